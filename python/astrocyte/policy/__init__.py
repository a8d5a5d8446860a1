"""Decisions about calls: what may pass, in one fixed order, before any pipeline runs."""
