"""A scanned log seen through a policy and a function class: counts of a table, moments of features."""
