"""Arguments of the tools, by subject. Their descriptions become part of the JSON schemas that clients read."""
