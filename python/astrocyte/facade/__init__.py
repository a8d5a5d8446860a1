"""The methods of `Astrocyte`, by subject."""
