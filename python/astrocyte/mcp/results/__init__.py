"""Results of the tools, by subject, and their conversion from the values of the API."""
