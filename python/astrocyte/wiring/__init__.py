"""The composition root: builds the parts of the application from the settings."""
