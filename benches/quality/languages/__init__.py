"""Recall in nine languages on one set, translated by hand; `python -m benches.quality.languages` prints it."""
