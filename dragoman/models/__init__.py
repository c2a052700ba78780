"""The Model interface, one file per model family, and the weight store."""
