"""Tables of derived items: observations, mental models, directives and wiki pages, their sources and consolidations."""
