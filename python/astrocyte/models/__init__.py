"""The model that ships with the package: one table, its description (.json), its licence and notice.

`astrocyte.core.bundled_embedder` reads the table; scripts/distill_static_embedder.py writes it.
"""
