"""Logs that mislead: does the verdict see it?"""
