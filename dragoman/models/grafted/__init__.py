"""Moonshine's encoder before layers and the decoder of a text model: speech into translations."""
