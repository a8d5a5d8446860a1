"""Messages and stubs generated from proto/astrocyte/v1 by proto/generate.py. Nothing here is edited by hand."""
