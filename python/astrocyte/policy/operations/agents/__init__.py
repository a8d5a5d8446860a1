"""The RPCs on agents' private memory, and on the terms and documents that agents share."""
