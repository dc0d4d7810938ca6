"""Shares of the error over a scanned log: a second pass, whose sums give the interval and the diagnostics."""
