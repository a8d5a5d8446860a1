"""Generators of the clients, one module for each language."""
