"""Archives of banks: format, export, staging, verification and import."""
