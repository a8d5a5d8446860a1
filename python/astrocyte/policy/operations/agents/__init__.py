"""Operations of agents: private memories, terms, and the shared knowledge base."""
