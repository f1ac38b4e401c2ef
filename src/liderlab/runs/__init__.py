"""Runs: built from a configuration, executed in a folder, resumed, loaded and exported."""
