"""Known problems with exact answers, one file each."""
