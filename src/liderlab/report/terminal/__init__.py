"""Runs, sweeps and studies as a terminal shows them."""
