"""Detectors count the words heard so far: the pre-decision module."""
