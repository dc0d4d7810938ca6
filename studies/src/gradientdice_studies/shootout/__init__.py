"""Every estimator on every benchmark."""
