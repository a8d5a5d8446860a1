"""The index of each bank: loading, rows, checkpoints and embedding spaces."""
