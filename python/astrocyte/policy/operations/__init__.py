"""The operations behind the gate, one module for each kind of call."""
