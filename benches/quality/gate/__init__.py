"""Regression gate of recall quality on a small set of this project; `python -m benches.quality.gate` prints it."""
