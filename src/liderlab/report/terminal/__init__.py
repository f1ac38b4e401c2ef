"""Runs, sweeps, studies and the ledger in the terminal."""
