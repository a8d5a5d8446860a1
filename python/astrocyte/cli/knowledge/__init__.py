"""Commands for directives, observations, mental models and the entity graph."""
