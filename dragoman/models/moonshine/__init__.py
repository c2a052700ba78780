"""Moonshine, which writes down English; its cost follows the length of the sound."""
