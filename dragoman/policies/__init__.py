"""Policies decide when to speak and how much of a draft to commit."""
