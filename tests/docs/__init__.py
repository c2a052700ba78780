"""Everything that the README and docs/ tell people to type is typed here."""
