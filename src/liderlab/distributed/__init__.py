"""Several processes (ranks) that train one network together."""
