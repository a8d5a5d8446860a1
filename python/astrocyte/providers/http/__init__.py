"""HTTP as the providers use it."""
