"""Values of what is derived from memories: entities and their graph, knowledge, wiki pages."""
