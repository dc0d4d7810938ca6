"""From solutions to answers: values, influence functions, intervals, diagnostics, selection."""
