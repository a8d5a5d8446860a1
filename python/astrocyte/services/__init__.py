"""The gRPC front door: decode, call the gate, encode; and what holds for every call around that."""
