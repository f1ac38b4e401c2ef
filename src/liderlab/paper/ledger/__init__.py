"""The reproduction ledger: every cell of the paper's tables, our number beside the paper's.

campaign            the runs that the ledger measures, and their order
record              the record of a finished run: one small file in records/
record_collection   makes records from run folders
cells               the names of the cells, and the case of each
deviations          how a run deviates from the paper's row: what makes it "smaller scale"
measured_cases      records that differ in their seed alone, with statistics over seeds
ledger_document     the whole ledger as plain values
repeat_command      the command that repeats a run
reproduction_check  runs one cell again and compares it with its record
figures             drawn from records alone
ledger_paths        where records and pages are
findings.md         the conclusions, written by hand; the page includes it
"""
