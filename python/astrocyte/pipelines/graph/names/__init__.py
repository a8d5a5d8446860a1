"""Recognition of names in text, and their normal forms."""
