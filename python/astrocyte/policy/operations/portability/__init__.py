"""Export and import of banks."""
