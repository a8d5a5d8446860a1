"""Messages and stubs of the protocol."""
