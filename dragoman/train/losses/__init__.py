"""The losses of the papers."""
