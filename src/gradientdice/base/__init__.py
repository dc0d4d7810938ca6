"""Tools of every room: errors, arrays, files that are written whole, checkpoints, progress, threads, devices."""
