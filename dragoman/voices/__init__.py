"""Voices turn text into sound, on their own thread."""
