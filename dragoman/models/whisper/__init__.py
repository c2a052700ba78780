"""Whisper, an offline model that is asked again and again."""
