"""One module per group of tables: its statements, and nothing else."""
