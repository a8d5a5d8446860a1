"""Signal quality: content scoring and noisy banks."""
