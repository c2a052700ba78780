"""Exported text nets on a GPU, by torch: all sentences of a step are one batch."""
