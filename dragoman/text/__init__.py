"""Languages, subword units, word boundaries, captions."""
