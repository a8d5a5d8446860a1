"""The pipelines: one module per operation, and the steps that operations share."""
