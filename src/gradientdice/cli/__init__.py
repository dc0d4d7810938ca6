"""The command line: thin over the library, with one-line errors."""
