"""A learned model of the dynamics: simulate the policy in it, and score the log's rows by what it says."""
