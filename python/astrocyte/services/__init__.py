"""The gRPC interface: decode, call the gate, encode; and the steps around every call."""
