"""Reading, merging and checking settings, and their sections by bank."""
