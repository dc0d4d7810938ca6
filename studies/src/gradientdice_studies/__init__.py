"""Reproductions: each is a grid as data, a run that writes a table, and pages and figures that read only the table."""
