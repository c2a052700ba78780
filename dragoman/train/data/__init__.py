"""Corpora, features, augmentation and batches for training."""
