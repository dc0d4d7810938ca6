"""Logs that are read in batches: files beyond memory, Arrow datasets and Dask frames."""

from gradientdice.log.scanning.log import ScannedLog, scan

__all__ = ["ScannedLog", "scan"]
