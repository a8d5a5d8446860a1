"""Proxy sources: another service as an engine, over HTTP. They need the extra ``proxy``."""
