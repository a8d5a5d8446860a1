"""The lifecycle of memories: archiving, expiry and deletion by age, on request and by a schedule."""
