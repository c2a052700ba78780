"""Corpora, runs, sweeps, tuning, reports: the laboratory."""
