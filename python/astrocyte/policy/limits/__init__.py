"""Rate limits, daily quotas and the storage quota."""
