"""The Python API: runs, sweeps and comparisons by keywords, as convenient as the command line."""
