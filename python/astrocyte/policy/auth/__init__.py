"""Authentication and authorisation: API keys, JWTs, grants and access control."""
