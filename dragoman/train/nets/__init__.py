"""The nets of the papers."""
