"""One file per data family, and the catalogue of data sets."""
