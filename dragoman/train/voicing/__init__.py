"""Voiced corpora: parallel text spoken by many synthetic voices, with the words' true ends."""
