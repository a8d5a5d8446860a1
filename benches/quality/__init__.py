"""Recall quality of the product on question sets; `python -m benches.quality --help` says how."""
