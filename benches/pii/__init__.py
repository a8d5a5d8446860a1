"""How well personal data and secrets are found: generated documents with known findings, and hard ones without any."""
