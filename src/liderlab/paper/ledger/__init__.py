"""The reproduction ledger: every cell of the paper's tables, ours beside theirs.

campaign    which runs the ledger measures, in which order
record      what is kept of a finished run: one small file in records/
collect_records     from a run's folder to its record
cells       the names of the cells, and the case that each of them is
deviations_from_paper  in what a run departs from the paper's row: what makes it "smaller scale"
assemble    records and the paper's numbers become the ledger
check       runs one cell again and compares it with its record
figures     drawn from records alone
findings.md what the numbers say, written by hand; the page includes it
"""
