"""Results for people to read: tables, figures and progress. Reads run folders; trains nothing."""
