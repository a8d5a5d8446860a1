"""The settings that hold for one bank: overrides, templates and profiles."""
