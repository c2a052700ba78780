"""Monotonic attention: heads that read the source from left to right and decide where to stop.

decisions     where heads may stop, and where they do at work
alignment     where they stop in expectation, and what they then look back on
expectation   all of it for a batch in training: plain, or as Triton kernels
attention     the layer that a decoder is made of
"""
