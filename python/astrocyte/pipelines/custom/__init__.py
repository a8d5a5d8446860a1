"""Steps that others wrote, in their places: bounded in time, and never trusted with what may be seen."""
