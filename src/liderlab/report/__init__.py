"""What people look at: tables, figures and progress. Reads results, computes nothing new."""
