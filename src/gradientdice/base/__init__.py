"""What every room uses: errors, arrays, files that are written whole, checkpoints, progress, threads, devices."""
