"""Banks: creation and deletion, the selection of several, and references between them."""
