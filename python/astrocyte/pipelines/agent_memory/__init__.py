"""Private memory of agents: canonical terms, the vectors of each agent, and the ranking of a blended recall."""
