"""What a reader sees: tables, plots, the HTML report."""
