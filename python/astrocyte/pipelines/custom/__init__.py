"""Custom steps of the pipelines: bounded in time, and never trusted with access decisions."""
