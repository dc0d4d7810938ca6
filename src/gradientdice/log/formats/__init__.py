"""From wherever logs live to a log: one file per foreign format, and `load`, which recognises them."""

from gradientdice.log.formats.load import load

__all__ = ["load"]
