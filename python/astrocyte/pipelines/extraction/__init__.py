"""What is taken out of a content beside its text: metadata and tags by profile, and the entities that it names."""
