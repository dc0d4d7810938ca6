"""Logs that are read in batches: files beyond memory, Arrow datasets and Dask frames."""
