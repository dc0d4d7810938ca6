"""A log seen through a policy and a function class: feature rows, support, moments and folds, each computed once."""
