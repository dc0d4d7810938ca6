"""Learning with networks: whole grids of runs as one compiled program, on one device or several."""
