"""The front door: `evaluate`, `compare`, `sweep` and the `Estimate` that they give back."""
