"""A recogniser and a translator behind it, as one model."""
