"""The HTML report: one file that opens in any browser, offline."""
