"""The figures of several replicas, in one place."""

from prometheus_client.parser import text_string_to_metric_families

from dragoman.serve.board import OLD, Board
from dragoman.serve.metrics import Metrics, merged


def samples(text):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_figures_of_all_are_told_apart():
    one, two = Metrics(), Metrics()
    one.streams.set(3)
    two.streams.set(4)
    one.lag.observe(1.2)
    one.refused.labels("full").inc(2)
    two.refused.labels("token").inc()
    texts = {"a:1": one.text(), "b:2": two.text()}
    told = samples(merged(texts))
    assert told == {
        (name, tuple(sorted([*labels, ("replica", who)]))): value
        for who, text in texts.items()
        for (name, labels), value in samples(text).items()
    }
    assert told["dragoman_streams", (("replica", "b:2"),)] == 4
    assert told["dragoman_refused_total", (("code", "full"), ("replica", "a:1"))] == 2
    assert merged(texts).count("# TYPE dragoman_lag_seconds histogram") == 1


def test_who_is_gone_is_left_out():
    clock = iter([0.0, 1.0, OLD - 0.1, OLD + 0.5, OLD + 0.6])
    board = Board(lambda: next(clock))
    board.hang("one", "a")
    board.hang("two", "b")
    assert board.read() == {"one": "a", "two": "b"}
    assert board.read() == {"two": "b"}
    board.hang("one", "c")
    assert set(board._hung) == {"one", "two"}
