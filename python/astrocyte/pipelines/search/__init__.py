"""The request to the core, and candidates of further arms."""
