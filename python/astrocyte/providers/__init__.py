"""Providers of models, each behind a protocol; one file per vendor, imported at first use."""
