"""A language model for the entity graph: it reads memories, and decides on names that rules leave open."""
