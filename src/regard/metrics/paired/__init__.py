"""Is one model better than another on the same rows? Tests on the numbers that a score is computed from, row by row."""
