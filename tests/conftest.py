"""For all tests: the machine may be busy, so no example of a property has a time limit; examples
are the same in every run; and what was left out is told at the end.

`pytest --hypothesis-profile searching` looks for examples that were never tried.
"""

from collections import Counter

from hypothesis import HealthCheck, settings

busy = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("patient", derandomize=True, **busy)
settings.register_profile("searching", **busy)
settings.load_profile("patient")


def pytest_terminal_summary(terminalreporter):
    """Why tests were left out, each reason once."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"Left out ({count}): {reason}")
