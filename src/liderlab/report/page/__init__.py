"""Pages: the HTML report, one file that opens in any browser, and the ledger in Markdown."""
