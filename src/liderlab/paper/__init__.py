"""The paper: its printed numbers, its studies, and the ledger that compares them with ours."""
