"""Settings of knowledge, of the entity graph and of agent memory."""
