"""The life of banks, the selection of several, and references between them."""
