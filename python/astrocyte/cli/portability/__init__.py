"""Commands that export banks, and import archives and what other systems hold."""
