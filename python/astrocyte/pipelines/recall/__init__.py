"""One recall: embedding, the core, ranking steps, hits and trace."""
