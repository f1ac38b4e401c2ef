"""Data on disk: the data folder, downloads, archives and the cache of decoded images."""
