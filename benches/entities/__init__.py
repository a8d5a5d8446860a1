"""Accuracy of the entity graph: extraction on labelled sentences, and resolution on labelled pairs of names."""
