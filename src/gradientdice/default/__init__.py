"""What answers when no estimator is chosen: search for functions, learned model, fitted Q, their combination."""
