"""Models from outside, each behind a protocol; one file per vendor, imported when it is asked for."""
