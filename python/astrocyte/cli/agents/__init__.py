"""Commands for agents' private memory and canonical terms."""
