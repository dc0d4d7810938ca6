"""`evaluate`, `compare` and `rank` for a log that is not in memory: sums in one pass, shares of the error in another.

A table's value follows from counts, and a linear fit's from moments, which one pass gives. The interval needs the
shares of the error by episode, from a second pass; a table with independent rows and few different rewards needs none,
since its counts are the log. Several questions share each pass. Tests of what is assumed about the log are made on a
sample of its rows, and so is the search for features where nobody gives any.
"""
