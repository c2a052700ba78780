"""For all tests: the machine may be busy, so no example of a property has a time limit."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
