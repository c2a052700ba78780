"""Latency, quality, long form and significance: every number Dragoman reports."""
