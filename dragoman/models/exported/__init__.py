"""The workshop's nets, run without torch."""
