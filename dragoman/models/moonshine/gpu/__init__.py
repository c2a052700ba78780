"""Moonshine on a GPU, by torch: everything that a step does for all streams is one batch."""
