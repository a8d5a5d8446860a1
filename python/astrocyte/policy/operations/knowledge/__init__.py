"""Handlers of the RPCs on observations, mental models and directives."""
