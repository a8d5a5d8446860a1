"""Encryption of a bank's content by a key of the bank's own, which the deletion of the bank destroys."""
