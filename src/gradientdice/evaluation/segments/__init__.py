"""Values by segment: by group of initial states, or by group of the log's rows."""
