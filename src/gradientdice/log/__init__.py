"""Logged transitions, their checks, and where they come from: files, data frames, other libraries."""
