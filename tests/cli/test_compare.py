"""`dragoman compare` as a user calls it."""

import json
import re
import subprocess
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from dragoman.cli.compare import command
from dragoman.cli.wrap import filled
from dragoman.errors import DragomanError
from tests import warm
from tests.cli.terminal import terminal

ROOT = Path(__file__).parents[2]
WORDS = "one two three four five six seven eight nine ten".split()  # noqa: SIM905


def write(path, late=0, lose=False, indices=range(30)):
    """Sentences of ten words, some of them short of a word if `lose`, all of them `late`."""
    with path.open("w", encoding="utf-8") as file:
        for index in indices:
            said = WORDS[: 10 - (1 + index % 2) * lose]
            delays = [1000 + late + 300 * i + 7 * (index % 5) for i in range(len(said))]
            row = {"index": index, "prediction": " ".join(said), "delays": delays}
            row |= {"elapsed": [delay + 10 for delay in delays], "source_length": 4000}
            file.write(json.dumps(row | {"reference": " ".join(WORDS), "source": ["a"]}) + "\n")
    return path


def run(*arguments):
    result = CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def metrics(*arguments):
    return json.loads(run(*arguments, "--json"))["metrics"]


def test_a_clear_difference_is_found(tmp_path):
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log", late=500, lose=True)
    found = metrics(first, second)
    assert found["StartOffset"]["difference"] == pytest.approx(500)
    assert found["StartOffset"]["interval"] == pytest.approx({"low": 500, "high": 500})
    assert found["WER"]["difference"] == pytest.approx(15)
    for name in ("LAAL", "WER", "BLEU"):
        for p in ("p_bootstrap", "p_randomisation", "p_t_test"):
            assert found[name][p] < 0.05, (name, p)


def test_a_log_does_not_differ_from_itself(tmp_path):
    log = write(tmp_path / "a.log", lose=True)
    for values in metrics(log, log).values():
        if values["first"] is not None:
            assert values["difference"] == 0
            assert values["p_bootstrap"] == values["p_randomisation"] == values["p_t_test"] == 1


def assert_alike(found, wanted):
    """Equal but for the last bits: sums may round differently from one process to the next."""
    assert found.keys() == wanted.keys()
    for name, values in found.items():
        for key, value in values.items():
            if isinstance(value, float):
                assert value == pytest.approx(wanted[name][key], rel=1e-9, abs=1e-9), (name, key)
            else:
                assert value == pytest.approx(wanted[name][key]), (name, key)


def test_the_order_of_a_log_does_not_matter(tmp_path):
    first = write(tmp_path / "a.log")
    second = write(tmp_path / "b.log", late=100, lose=True)
    turned = write(tmp_path / "c.log", late=100, lose=True, indices=range(29, -1, -1))
    assert_alike(metrics(first, turned), metrics(first, second))


def test_the_seed_decides(tmp_path):
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log", lose=True)
    once = metrics(first, second, "--seed", 1, "--resamples", 7)
    assert_alike(metrics(first, second, "--seed", 1, "--resamples", 7), once)
    assert metrics(first, second, "--seed", 2, "--resamples", 7) != once


def test_the_table_stars_what_differs(tmp_path):
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log", late=500)
    rows = {line.split()[0]: line for line in run(first, second).splitlines() if line.strip()}
    assert "+500*" in rows["StartOffset"]
    assert "*" not in rows["BLEU"]
    assert "BLEU|nrefs:1" in rows["BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"]


def test_nothing_is_not_below_zero(tmp_path):
    """A difference of -0.4 ms, and an interval around it."""
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log", late=-0.4)
    shown = run(first, second)
    assert " +0*" in shown  # every sentence differs by as much
    assert not re.search(r" -0(\.0+)?[* ]", shown)


def test_there_is_no_signature_of_what_is_not_compared(tmp_path):
    log = write(tmp_path / "a.log")  # in which nothing was taken back
    found = json.loads(run(log, log, "--json"))
    assert "Erasure" not in found["metrics"]
    assert set(found["signature"]) == set(found["metrics"])
    assert "Erasure" not in run(log, log)


@pytest.mark.parametrize("order", [1, -1])
def test_letters_of_odd_width_in_one_log_alone(tmp_path, order):
    """OmniSTEval scores such a log twice, and the other one once."""
    segments, references = tmp_path / "segments.yaml", tmp_path / "refs.txt"
    segments.write_text("- {wav: a, offset: 0, duration: 4}\n")
    references.write_text(" ".join(WORDS) + "\n")
    plain = write(tmp_path / "a.log", indices=range(1))
    wide = tmp_path / "b.log"
    wide.write_text(plain.read_text(encoding="utf-8").replace("one", "ｏne", 1), encoding="utf-8")
    talks = ("--segments", segments, "--references", references, "--compat", "omnisteval")
    found = metrics(*[plain, wide][::order], *talks)
    assert found["BLEU"]["difference"] * order < 0
    assert "BLEU_NFKC" not in found


def test_talks_are_compared_by_their_segments(tmp_path):
    segments, references = tmp_path / "segments.yaml", tmp_path / "refs.txt"
    segments.write_text("- {wav: a, offset: 0, duration: 2}\n- {wav: a, offset: 2, duration: 2}\n")
    references.write_text("one two three four five\nsix seven eight nine ten\n")
    first = write(tmp_path / "a.log", indices=[0])
    second = write(tmp_path / "b.log", late=250, indices=[0])
    talks = ("--segments", segments, "--references", references)
    content = json.loads(run(first, second, *talks, "--json"))
    assert content["sentences"] == 2
    assert content["metrics"]["LongDAL"]["difference"] == pytest.approx(250)


def test_different_corpora_are_refused(tmp_path):
    first = write(tmp_path / "a.log")
    with pytest.raises(DragomanError, match="not the same"):
        metrics(first, write(tmp_path / "b.log", indices=range(29)))
    other = write(tmp_path / "c.log")
    other.write_text(other.read_text().replace('"reference": "one', '"reference": "uno', 1))
    with pytest.raises(DragomanError, match="Sentence 0 has different references"):
        metrics(first, other)


def test_nor_are_recordings_of_different_lengths_where_there_is_no_reference(tmp_path):
    logs = []
    for name, length in (("one", 4000), ("same", 4050), ("other", 9000)):
        row = {"index": 0, "prediction": "a b", "delays": [1000, 2000], "elapsed": [1001, 2001],
               "source_length": length, "source": ["a"]}  # fmt: skip
        logs.append(tmp_path / f"{name}[draft].log")
        logs[-1].write_text(json.dumps(row) + "\n")
    one, same, other = logs
    with pytest.raises(DragomanError, match=r"is 4,000 and 9,000 ms long in .*one corpus"):
        run(one, other)
    found = run(one, same)
    assert "one[draft].log" in found.replace("\n", "")
    assert "BLEU " not in found  # it is undefined, not 0
    assert "LAAL" in found


def lengthened(log, path, lengths):
    """The same log, of recordings of other lengths."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    rows = [row | {"source_length": lengths.get(row["index"], 4000)} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_references_that_are_given_to_other_recordings_are_told(tmp_path):
    """They make the texts of any two logs the same."""
    one, references = write(tmp_path / "a.log", indices=range(4)), tmp_path / "refs.txt"
    references.write_text(f"{' '.join(WORDS)}\n" * 4)
    same = lengthened(one, tmp_path / "same.log", {2: 4090})
    other = lengthened(one, tmp_path / "other.log", {1: 9000, 3: 7000})
    given = ("--references", str(references))

    def told(log, *options):
        result = CliRunner().invoke(command, [str(one), str(log), *options, "--json"])
        assert json.loads(result.stdout)["sentences"]
        return result.stderr

    assert told(same, *given) == ""
    assert told(other) == ""  # the same texts, in another voice
    assert told(other, *given) == (
        f"Sentences of other lengths in {one} and {other}, 2 of 4: 1, 3; 1 is 4,000 and 9,000 ms "
        "long. Are both logs of one corpus?\n"
    )


def test_talks_of_other_lengths_are_told_by_their_names(tmp_path):
    segments, references = tmp_path / "segments.yaml", tmp_path / "refs.txt"
    segments.write_text("".join(f"- {{wav: {n}.wav, offset: 0, duration: 4}}\n" for n in "xyz"))
    references.write_text(f"{' '.join(WORDS)}\n" * 3)
    one, lengths = write(tmp_path / "a.log", indices=range(3)), (4000, 6000, 8000)
    rows = [json.loads(line) for line in one.read_text().splitlines()]

    def log(name, talks, lengths):
        said = [
            rows[n] | {"source": [f"{talk}.wav"], "source_length": length}
            for n, (talk, length) in enumerate(zip(talks, lengths, strict=True))
        ]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in said))
        return str(tmp_path / name)

    first = log("first.log", "xyz", lengths)
    turned = log("turned.log", "zyx", [length + 900 for length in reversed(lengths)])
    other = log("other.log", "zyx", (8000, 6000, 44000))
    options = ["--segments", str(segments), "--references", str(references), "--json"]
    told = CliRunner().invoke(command, [first, turned, *options], catch_exceptions=False)
    assert told.stderr == ""
    told = CliRunner().invoke(command, [first, other, *options], catch_exceptions=False)
    assert "Talks of other lengths" in told.stderr
    assert "1 of 3: 0; 0 is 4,000 and 44,000 ms long" in told.stderr


def test_a_missing_log_is_a_sentence(tmp_path):
    log = write(tmp_path / "a.log")
    done = subprocess.run(
        warm.command("-m", "dragoman", "compare", str(log), str(tmp_path / "none.log")),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "There is no log" in done.stderr
    assert "Traceback" not in done.stderr


def test_against_several_references_chance_is_sacrebleus(tmp_path):
    draw = Random(1)

    def texts(sure):
        return [
            " ".join(word if draw.random() < sure else draw.choice(WORDS) for word in WORDS)
            for _ in range(30)
        ]

    said, documents = [texts(0.7), texts(0.72)], [texts(0.8), texts(0.8)]
    logs, options = [], []
    for name, lines in zip("ab", said, strict=True):
        logs.append(write(tmp_path / f"{name}.log"))
        rows = [json.loads(row) for row in logs[-1].read_text().splitlines()]
        rows = [row | {"prediction": text} for row, text in zip(rows, lines, strict=True)]
        logs[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, lines in zip("cd", documents, strict=True):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
        options += ["--references", tmp_path / name]
    found = metrics(*logs, *options, "-m", "BLEU", "-m", "chrF")
    systems = [("first", said[0]), ("second", said[1])]
    for name, metric in (("BLEU", BLEU()), ("chrF", CHRF())):
        _, told = PairedTest(systems, {name: metric}, documents, "ar", n_samples=1000)()
        told = list(told.values())[-1]
        assert found[name]["first"] == pytest.approx(told[0].score, abs=1e-9)
        assert found[name]["second"] == pytest.approx(told[1].score, abs=1e-9)
        assert found[name]["p_randomisation"] > 0.02  # or any would do
        assert found[name]["p_randomisation"] == pytest.approx(told[1].p_value, abs=0.05)
    once, twice = metrics(*logs, *options[:2]), metrics(*logs, *options[:2], *options[:2])
    assert_alike(twice, once)  # a reference that says nothing new


def test_other_references_are_another_corpus(tmp_path):
    one, other = write(tmp_path / "a.log"), tmp_path / "b.log"
    rows = [json.loads(line) for line in one.read_text().splitlines()]
    other.write_text("".join(json.dumps(r | {"more_references": ["ten"]}) + "\n" for r in rows))
    metrics(other, other)
    with pytest.raises(DragomanError, match="has different references"):
        run(one, other)


def test_runs_of_other_clips_are_compared_by_those_that_both_have(tmp_path):
    """A clip that one of two systems could not read need not cost the comparison."""
    first = write(tmp_path / "a.log", indices=range(25))
    second = write(tmp_path / "b.log", late=500, lose=True, indices=[29, *range(1, 25)])
    with pytest.raises(DragomanError, match="--common compares those that both have"):
        run(first, second)
    told = CliRunner().invoke(command, [str(first), str(second), "--common", "--json"])
    assert f"Sentences that {first} lacks, 1: 29\n" in told.stderr
    assert f"Sentences that {second} lacks, 1: 0\n" in told.stderr
    assert json.loads(told.stdout)["sentences"] == 24
    one = write(tmp_path / "c.log", indices=range(1, 25))
    other = write(tmp_path / "d.log", late=500, lose=True, indices=range(1, 25))
    assert_alike(json.loads(told.stdout)["metrics"], metrics(one, other))
    assert_alike(metrics(one, other, "--common"), metrics(one, other))
    apart = write(tmp_path / "e.log", indices=range(50, 60))
    with pytest.raises(DragomanError, match="have no sentence in common"):
        run(first, apart, "--common")


def test_what_is_left_out_or_doubtful_is_told_of_each_log(tmp_path):
    """A difference of fewer sentences than there are is another difference."""
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log", late=2000)
    for log in (first, second):
        log.write_text(log.read_text() + '{"index": 30, "predic\n')
    result = CliRunner().invoke(command, [str(first), str(second), "--skip-broken", "--json"])
    assert json.loads(result.stdout)["sentences"] == 30
    for log in (first, second):
        assert f"left out: {log}, line 31: this is not valid JSON" in result.stderr
    told = f"Sentences of {second} with delays beyond the end of their source, 30 of 30: 0, 1"
    assert told in result.stderr
    assert f"Sentences of {first}" not in result.stderr


def without(log, indices):
    """The same log, but of these sentences nothing was said."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    silent = {"prediction": "", "delays": [], "elapsed": []}
    rows = [row | silent if row["index"] in indices else row for row in rows]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return log


def test_latencies_are_compared_on_the_sentences_that_have_them_in_both_logs(tmp_path):
    """Who says nothing where it would be late is not faster for it."""
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log", late=50)
    for log in (first, second):  # the first ten sentences are three seconds late in both
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        for row in rows:
            row["source_length"] = 9000
        for row in rows[:10]:
            row["delays"] = [delay + 3000 for delay in row["delays"]]
            row["elapsed"] = [delay + 10 for delay in row["delays"]]
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    without(first, {28})
    without(second, {0, 1, 2, 3, 28, 29})
    result = CliRunner().invoke(command, [str(first), str(second), "--json"])
    found = json.loads(result.stdout)
    start = found["metrics"]["StartOffset"]
    starts = [1000 + 7 * (i % 5) + 3000 * (i < 10) for i in range(4, 28)]
    assert start["first"] == pytest.approx(sum(starts) / 24)
    assert start["difference"] == pytest.approx(50)
    assert start["interval"] == pytest.approx({"low": 50, "high": 50})
    assert start["p_randomisation"] < 0.01
    assert start["sentences"] == 24
    assert (start["first_lacks"], start["second_lacks"]) == ([], [0, 1, 2, 3, 29])
    bleu = found["metrics"]["BLEU"]
    assert (bleu["sentences"], bleu["first_lacks"], bleu["second_lacks"]) == (30, [], [])
    told = [line for line in result.stderr.splitlines() if line.startswith("Left out of")]
    assert len(told) == 1
    assert told[0].startswith("Left out of AL LAAL DAL AP ATD YAAL StartOffset")
    assert told[0].endswith(
        f"RTF and their _CA: sentences without a value in {second}, 5 of 30: 0, 1, 2, 3, 29"
    )
    rows = {line.split()[0]: line.split()[-1] for line in run(first, second).splitlines() if line}
    assert (rows["metric"], rows["BLEU"], rows["StartOffset"]) == ("n", "30", "24")
    assert "sentences: 30, n: those with a value in both, resamples" in run(first, second)


def test_quality_is_compared_where_both_outputs_are_text(tmp_path):
    """Of a file of sound nobody knows the words, and it is no empty text."""
    first, second = (write(tmp_path / name, indices=range(40, 70)) for name in ("a.log", "b.log"))
    rows = [json.loads(line) for line in second.read_text().splitlines()]
    spoken = {"prediction": "3.wav", "durations": [300.0] * 10, "intervals": []}
    rows[3] |= spoken | {"prediction_offset": 0.0}
    second.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = metrics(first, second)
    for name, best in (("BLEU", 100), ("chrF", 100), ("WER", 0)):
        assert (found[name]["first"], found[name]["second"]) == (best, best)
        assert found[name]["sentences"] == 29
        assert (found[name]["first_lacks"], found[name]["second_lacks"]) == ([], [43])


def test_what_is_left_out_is_told_on_lines_of_its_own(tmp_path):
    """And not behind the sign that turns while the sentences are resampled."""
    first, second = write(tmp_path / "a.log"), without(write(tmp_path / "b.log"), {0})
    lacking = write(tmp_path / "c.log", indices=range(1, 30))
    for other, told in ((second, "Left out of AL LAAL"), (lacking, "Sentences that ")):
        compared = ("compare", str(first), str(other), "--common", "--resamples", "20000")
        with terminal(*compared, columns=300, lines=50) as screen:
            assert screen.rest() == 0
        assert any(line.startswith(told) for line in screen.everything)


def test_what_is_told_breaks_between_words_on_a_narrow_terminal(tmp_path):
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log", indices=range(8, 30))
    with terminal("compare", str(first), str(second), "--common", columns=44) as screen:
        assert screen.rest() == 0
    told = filled(f"Sentences that {second} lacks, 8: 0, 1, 2, 3, 4, 5, 6, 7", 44).splitlines()
    assert [line.rstrip() for line in told] == screen.everything[: len(told)]


def test_sentences_are_counted_in_the_table_only_where_some_are_left_out(tmp_path):
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log", late=50)
    head, _, rest = run(first, second).partition("BLEU")
    assert head.splitlines()[2].split()[-1] == "t"
    assert "n: those" not in rest


def test_what_one_log_has_of_no_sentence_is_not_compared(tmp_path):
    """Such as latency with computation, which not every log knows."""
    first, second = write(tmp_path / "a.log"), write(tmp_path / "b.log")
    rows = [json.loads(line) | {"elapsed": []} for line in second.read_text().splitlines()]
    second.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(command, [str(first), str(second), "--json"])
    found = json.loads(result.stdout)["metrics"]
    assert "LAAL" in found
    assert "LAAL_CA" not in found
    told = f"StartOffset_CA EndOffset_CA NumChunks_CA: sentences without a value in {second}, 30 of"
    assert told in result.stderr


def test_a_clip_that_was_left_out_is_of_one_of_the_runs(tmp_path):
    """Both lines were the same, and nobody was told of which run they were."""
    first, second = tmp_path / "one", tmp_path / "other"
    for folder in (first, second):
        folder.mkdir()
        write(folder / "instances.log")
    (second / "run.json").write_text('{"left_out": {"30": "clip 30 (a.wav): it is none."}}')
    result = CliRunner().invoke(command, [str(first), str(second), "--json"])
    assert f"left out of {second}/instances.log: clip 30 (a.wav): it is none." in result.stderr
