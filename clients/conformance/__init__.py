"""The conformance test of the clients."""
