"""The metrics again, one sentence at a time and straight from their definitions.

Written to be read, not to be fast: what the vectorised code must agree with. None is undefined.
"""

from __future__ import annotations


def al(times, source, target):
    """Ma et al. 2019, with SimulEval's rule for a system that begins after the source's end."""
    if times[0] > source:
        return times[0]
    if target == 0:
        return None
    total = count = 0
    for position, time in enumerate(times):
        total += time - position * source / target
        count += 1
        if time >= source:
            break
    return total / count


def laal(times, source, target):
    return al(times, source, max(target, len(times)))


def yaal(times, source, target):
    before_end = []
    for time in times:
        if time >= source:
            break
        before_end.append(time)
    if not before_end:
        return None
    pace = source / max(target, len(times))
    return sum(time - i * pace for i, time in enumerate(before_end)) / len(before_end)


def dal(times, source):
    """Cherry and Foster 2019: the adjusted times leave a step between any two units."""
    step = source / len(times)
    adjusted = []
    for time in times:
        adjusted.append(max(time, adjusted[-1] + step) if adjusted else time)
    return sum(time - i * step for i, time in enumerate(adjusted)) / len(times)


def ap(times, source, target):
    return sum(times) / (source * target) if target else None


def atd(delays, times, word=300.0):
    """Kano et al. 2023, for text said about speech: list every source word, then look up."""
    moments = list(dict.fromkeys(delays))
    source_ends = []  # when each source word ends, all chunks together
    heard = []  # after each chunk, how many there were
    begin = 0.0
    for moment in moments:
        end = begin
        while end < moment:
            end = min(end + word, moment)
            source_ends.append(end)
        heard.append(len(source_ends))
        begin = moment
    total = 0.0
    for t, (delay, time) in enumerate(zip(delays, times, strict=True), start=1):
        chunk = moments.index(delay)
        heard_before = heard[chunk - 1] if chunk else 0
        said_before = sum(other < delay for other in delays)
        s = t - max(0, said_before - heard_before)
        s = min(s, heard[chunk])
        total += time - (source_ends[s - 1] if s else 0.0)
    return total / len(delays)


def chunk_ends(arrivals, works):
    """A worker takes chunks in turn: each is begun when it is there and the last is done."""
    ends = []
    free_at = 0.0
    for arrival, work in zip(arrivals, works, strict=True):
        free_at = max(arrival, free_at) + work
        ends.append(free_at)
    return ends
