"""What the gate does for each kind of call."""
