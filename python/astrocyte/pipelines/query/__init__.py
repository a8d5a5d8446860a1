"""Analysis of queries: dates, intent and routing."""
