"""For all tests: the machine may be busy, so no example of a property has a time limit; and what
was left out is told at the end."""

from collections import Counter

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_terminal_summary(terminalreporter):
    """Why tests were left out, each reason once."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"Left out ({count}): {reason}")
