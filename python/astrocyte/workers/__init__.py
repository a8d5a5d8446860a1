"""Several server processes on one data directory and one port, under a supervisor."""
