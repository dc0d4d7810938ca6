"""From wherever logs live to a log: one file per foreign format, and `load.py`, which recognises them."""
