"""The report: its numbers, what was spoken, and how it looks on a phone."""

import base64
import csv
import html
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from dragoman.audio.source import open_audio
from dragoman.corpora import Clip
from dragoman.evaluate import sounds
from dragoman.evaluate.chart import Point, _round_step, curves
from dragoman.evaluate.report import SystemResult, write_report, write_scores
from dragoman.evaluate.result import Scorer, system_result
from dragoman.evaluate.run import Failure, Run, run_corpus
from dragoman.evaluate.sounds import spoken_clips
from dragoman.evaluate.sparing import Sparing
from dragoman.setup import Setup
from dragoman.trace import Hearing, Saying, Trace

SETUP = Setup(model="tests.scripted:steady", policy="greedy", source="de", step_ms=500)
NAMES = [
    "local-agreement 0.5 s",
    "avoid-eos-while-reading 1 s",
    *(f"wait-k {i} s" for i in range(9)),
]


@pytest.fixture
def clips(tmp_path):
    made = []
    for index, seconds in enumerate([4, 2, 3]):
        tone = 0.3 * np.sin(2 * np.pi * 200 * (index + 1) * np.arange(16000 * seconds) / 16000)
        soundfile.write(tmp_path / f"{index}.wav", tone.astype(np.float32), 16000)
        texts = {"en": "word0 word1", "de": f"</script> „Wort“ & {index}"}
        made.append(Clip(index, tmp_path / f"{index}.wav", texts, start=0.5))
    return made


def report(path, systems, spoken=None):
    write_report(path, "A title", "3 clips", systems, spoken)
    page = path.read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1]
    return page, json.loads(data)


def test_a_report_holds_what_was_spoken_as_text_and_as_sound(tmp_path, clips):
    run = run_corpus(clips, SETUP, tmp_path / "run")
    system = system_result(SETUP, run, Scorer.of("en"))
    _, data = report(tmp_path / "report.html", [system], spoken_clips(clips, "de", 20))
    for clip in clips:
        spoken = data["spoken"][str(clip.index)]
        assert spoken["text"] == f"</script> „Wort“ & {clip.index}"
        kind, _, encoded = spoken["sound"].partition(",")
        assert kind == "data:audio/ogg;base64"
        sound, rate = soundfile.read(io.BytesIO(base64.b64decode(encoded)))
        assert soundfile.info(io.BytesIO(base64.b64decode(encoded))).subtype == "OPUS"
        original, _ = soundfile.read(clip.audio)
        assert len(sound) / rate == pytest.approx(len(original) / 16000 - 0.5, abs=0.05)
        spectrum = np.abs(np.fft.rfft(sound))  # the right clip: its own tone is the loudest
        loudest = np.argmax(spectrum) * rate / len(sound)
        assert loudest == pytest.approx(200 * (clip.index + 1), abs=2)


def test_sounds_keep_to_their_room(clips):
    whole = spoken_clips(clips, "de", 20)
    sizes = [len(whole[clip.index].sound) for clip in clips]
    assert sizes[1] < sizes[2] < sizes[0]
    # Room for the second alone: the first is too long for it, the third comes too late.
    some = spoken_clips(clips, "de", (sizes[1] + 100) / 1_000_000)
    assert [bool(some[clip.index].sound) for clip in clips] == [False, True, False]
    twice = spoken_clips([clips[1], replace(clips[1], index=7)], "de", 1.5 * sizes[1] / 1_000_000)
    assert [bool(spoken.sound) for spoken in twice.values()] == [True, False]
    tight = spoken_clips(clips[1:2], "de", 0.9 * sizes[1] / 1_000_000)  # as bytes it would fit
    assert not tight[1].sound
    none = spoken_clips(clips, "fr", 0)
    assert not any(each.sound or each.text for each in none.values())


def test_no_sound_is_encoded_only_to_be_thrown_away(clips, monkeypatch):
    """There were nine of ten talks of a parliament of which this happened."""
    read = []

    def reading(path, **options):
        for chunk in open_audio(path, **options):
            read.append(chunk.seconds)
            yield chunk

    monkeypatch.setattr(sounds, "open_audio", reading)
    one = len(spoken_clips(clips[1:2], "de", 20)[1].sound) / 1_000_000
    long, short = clips[0], clips[1]
    read.clear()
    # The first fills half of the room; of those that do not fit, one is tried.
    many = [short, *(replace(long, index=index) for index in range(10, 60))]
    some = spoken_clips(many, "de", 2 * one)
    assert [index for index, each in some.items() if each.sound] == [1]
    assert sum(read) < 1.5 + 3.5
    read.clear()
    assert not spoken_clips([long], "de", 0.005)[0].sound  # nor is it begun
    assert not read


def test_a_clip_without_sound_is_no_fault_of_the_report(clips):
    clips[1].audio.write_bytes(b"not sound")
    clips[2] = replace(clips[2], start=None)  # all of it
    assert [bool(s.sound) for s in spoken_clips(clips, "de", 20).values()] == [True, False, True]


def trace_of(sayings, reference="", source_ms=4000):
    hearings = [Hearing(t, t, t, t + 10) for t in range(1000, source_ms + 1, 1000)]
    return Trace(0, "a.wav", reference, hearings, [Saying(*each) for each in sayings])


def test_no_text_is_taken_for_the_page_itself(tmp_path):
    """A comment that holds a script would swallow the end of the script around it."""
    said = "<!-- <script> </script>"
    system = SystemResult("s", "c", {}, {}, [], [trace_of([(said, 0)])])
    page, data = report(tmp_path / "r.html", [system])
    assert data["systems"][0]["sentences"][0]["prediction"] == said
    assert "<!--" not in page


def test_an_interval_below_zero_can_be_read(tmp_path):
    scores = {"LAAL": 500.0, "AL": 900.0, "DAL": 400.0}
    intervals = {"LAAL": (-1500.0, 2500.0), "AL": (800, 1000), "DAL": (0.0, 700.0)}
    system = SystemResult("s", "c", scores, {}, [], [], intervals=intervals)
    page, _ = report(tmp_path / "r.html", [system])
    assert ">-1.50 to 2.50<" in page
    assert ">0.80–1.00<" in page
    assert ">0.00–0.70<" in page


def test_what_is_undefined_is_no_number_in_the_page(tmp_path):
    """NaN is no JSON: all of the page would stay empty."""
    system = system_result(SETUP, Run([trace_of([], "word0")], []), Scorer.of("en"))
    page, data = report(tmp_path / "r.html", [system])
    (sentence,) = data["systems"][0]["sentences"]
    assert [sentence[name] for name in ("AL", "LAAL", "LAAL_CA", "DAL")] == [None] * 4
    assert "<th>LAAL (s)</th>" not in page  # no system has one
    assert system.scores["LAAL"] is None


def test_a_ratio_has_two_places_as_a_time_has(tmp_path):
    scores = {"BLEU": 21.25, "AP": 0.25, "RTF": 0.125, "LAAL": 1250.0}
    page, _ = report(tmp_path / "r.html", [SystemResult("s", "c", scores, {}, [], [])])
    cells = re.findall(r'data-label="([^"]*)" data-value="[^"]*">([^<]*)<', page)
    assert dict(cells) == {"BLEU": "21.2", "AP": "0.25", "RTF": "0.12", "LAAL (s)": "1.25"}
    assert re.findall("<th>(.*?)</th>", page) == ["System", "BLEU", "LAAL (s)", "AP", "RTF"]


def test_nothing_is_not_below_zero(tmp_path):
    system = SystemResult(
        "s", "c", {"LAAL": -4.0, "BLEU": 1.0}, {}, [], [], intervals={"LAAL": (-4.0, 4.0)}
    )
    page, _ = report(tmp_path / "r.html", [system])
    assert ">0.00<" in page
    assert ">0.00 to 0.00<" in page
    assert "s: 1.0 at 0.00 s<" in page
    assert not re.search(r"-0\.0+\b", re.sub("<script.*", "", page, flags=re.S))
    formatted = re.search("const seconds = .*", page)[0]
    assert node(f"{formatted}\nconsole.log(seconds(-20), seconds(-51), seconds(1960))") == (
        "0.0 s -0.1 s 2.0 s"
    )


def node(script):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_characters_that_were_said_at_once_are_one_piece(tmp_path):
    trace = trace_of([("今天", 0), ("我们", 1), ("讨论", 1)], "今天我们讨论")
    system = SystemResult("s", "c", {}, {}, [], [trace], unit="char")
    _, data = report(tmp_path / "r.html", [system])
    (sentence,) = data["systems"][0]["sentences"]
    assert sentence["words"] == [["今天", 1000, 1010, 2], ["我们讨论", 2000, 2010, 4]]
    # At the end the same sound is heard once more: what is said then is shown later.
    again = replace(trace, hearings=[*trace.hearings[:2], Hearing(2000, 2000, 2010, 2500)])
    late = replace(again, sayings=[Saying("今天", 1), Saying("我们讨论", 2)])
    _, data = report(tmp_path / "r.html", [replace(system, traces=[late])])
    assert data["systems"][0]["sentences"][0]["words"] == [
        *(["今天", 2000, 2010, 2], ["我们讨论", 2000, 2500, 4])
    ]
    words = SystemResult("s", "c", {}, {}, [], [trace_of([(" Good day", 0), (" all.", 2)])])
    _, data = report(tmp_path / "r.html", [words])
    assert data["systems"][0]["sentences"][0]["words"] == [
        *(["Good", 1000, 1010, 1], ["day", 1000, 1010, 1], ["all.", 3000, 3010, 1])
    ]


@pytest.mark.parametrize(
    ("target", "reference", "tokenizer", "unit"),
    [("zh", "今天我们讨论。", "zh", "char"), ("en", "We talk about it today .", "13a", "word")],
)
def test_the_target_chooses_tokenizer_and_unit(tmp_path, target, reference, tokenizer, unit):
    run = Run([trace_of([(reference, 1)], reference)], [])
    system = system_result(SETUP.with_changes(target=target), run, Scorer.of(target))
    assert system.scores["BLEU"] == pytest.approx(100)
    assert f"tok:{tokenizer}|" in system.signature["BLEU"]
    assert f"unit:{unit}|" in system.signature["LAAL"]
    page, _ = report(tmp_path / "r.html", [system])
    assert f"tok:{tokenizer}|" in page
    assert f"unit:{unit}|" in page


@pytest.mark.parametrize("quality", [(59.2494, 59.2518), (0.85411, 0.85412), (20.0, 20.0), (0, 0)])
def test_a_difference_of_nothing_is_not_drawn_as_a_large_one(quality):
    points = [Point(str(n), str(n), 2.08305, value) for n, value in enumerate(quality)]
    drawing = curves(points, "BLEU", "LAAL")
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', drawing)]
    assert abs(heights[0] - heights[1]) < 5
    assert all(24 <= y <= 262 for y in heights)
    ticks = re.findall(r'text-anchor="(?:end|middle)">([\d.-]+)<', drawing)
    assert len(ticks) > 6
    assert max(map(len, ticks)) <= 4


def test_a_drawing_by_hand():
    """From 1 to 2 s over 446 of 520 pixels, from 10 to 20 points over 238 of 310, upwards."""
    points = [Point("a", f"a{n}", 1 + n / 4, 10 + 2.5 * n) for n in (4, 0, 2)]
    drawing = curves([*points, Point("b", "b", 1.25, 17.5)], "BLEU", "LAAL")
    places = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawing)
    assert places == [
        *(("48.0", "262.0"), ("271.0", "143.0"), ("494.0", "24.0")),
        ("159.5", "83.5"),
    ]
    lines = re.findall(r'<polyline points="([^"]*)"', drawing)
    assert lines == ["48.0,262.0 271.0,143.0 494.0,24.0", "159.5,83.5"]  # from left to right
    ticks = re.findall(r'text-anchor="(\w+)">([\d.]+)<', drawing)
    assert [text for side, text in ticks if side == "middle"] == [
        "1",
        "1.2",
        "1.4",
        "1.6",
        "1.8",
        "2",
    ]
    assert [text for side, text in ticks if side == "end"] == ["10", "12", "14", "16", "18", "20"]
    assert re.findall(r'x1="([\d.]+)" x2="([\d.]+)" y1="24"', drawing)[1] == ("137.2", "137.2")
    assert '<text x="42" y="266.0" text-anchor="end">10<' in drawing
    assert "<title>a2: 15.0 at 1.50 s</title>" in drawing


def test_names_of_curves_are_a_list_and_no_two_curves_look_alike():
    drawing = curves([Point(name, name, i, i) for i, name in enumerate(NAMES)], "BLEU", "LAAL")
    svg, legend = drawing.split("</svg>")
    assert re.findall(r"</i>(.*?)</li>", legend) == NAMES
    assert NAMES[0] not in re.sub(r"<title>.*?</title>", "", svg)
    looks = re.findall(r"<polyline [^>]*?(stroke=.*?)/>", svg)
    assert len(set(looks)) == len(NAMES)
    swatches = re.findall(r"<i(.*?)></i>", legend)
    assert len(set(swatches)) == len(NAMES)


def test_a_table_for_scripts_has_every_digit(tmp_path):
    write_scores(
        tmp_path / "s.tsv", [SystemResult("a", "c", {"BLEU": 12.345678, "AL": None}, {}, [], [])]
    )
    assert (tmp_path / "s.tsv").read_text() == ("system\tBLEU\tclips\tleft_out\na\t12.3457\t0\t\n")


def test_a_table_for_scripts_says_over_how_many_clips_it_is_and_which_are_left_out(tmp_path, clips):
    for broken in (clips[0], clips[2]):
        broken.audio.write_bytes(b"not sound at all")
    run = run_corpus(clips, SETUP, tmp_path / "run")
    write_scores(tmp_path / "s.tsv", [system_result(SETUP, run, Scorer.of("en"))])
    with (tmp_path / "s.tsv").open() as file:
        (row,) = csv.DictReader(file, delimiter="\t")
    assert row["clips"] == str(len(clips) - 2)
    assert row["left_out"] == f"{clips[0].index},{clips[2].index}"


# --- as it looks ----------------------------------------------------------------------------------

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
# Written into the page: what lies outside of the window, or of its drawing, and which letters are
# too small to read.
MEASURE = """
window.addEventListener("load", () => {
  const outside = (text) => {
    const [own, box] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
    return own.width && (own.right > box.right + 1 || own.left < box.left - 1);
  };
  const letters = [...document.querySelectorAll("svg text")];
  const shown = letters.filter((t) => t.getBoundingClientRect().width);
  parent.postMessage({
    room: document.documentElement.clientWidth,
    needed: document.documentElement.scrollWidth,
    clipped: shown.filter(outside).map((t) => t.textContent),
    letters: Math.min(...shown.map((t) => t.getBoundingClientRect().height)),
    sound: document.querySelectorAll("audio").length,
    text: document.body.innerText,
  }, "*");
});
"""
# A window is never narrower than 500, so the page is looked at in frames.
FRAMES = """<!doctype html><script>
addEventListener("message", (event) => {
  const frames = [...document.querySelectorAll("iframe")];
  const { name } = frames.find((frame) => frame.contentWindow === event.source);
  const seen = document.createElement("pre");
  seen.textContent = JSON.stringify({ name, ...event.data });
  document.body.append(seen);
});
</script><body></body>
"""
VIEWS = [(page, width) for page in ("", "#/0", "#/0/0", "#/0/1") for width in (390, 1280)]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
def test_nothing_is_cut_off(tmp_path, clips):
    words = [(" Donaudampfschifffahrtsgesellschaft", 3), (" said", 3), (" internationally.", 3)]
    slow = [Hearing(t, t, t, t + 90_000) for t in range(1000, 4001, 1000)]  # a busy machine
    traces = [trace_of([(" A", 0), (" word", 1), *words])]
    traces.append(replace(traces[0], index=1, hearings=slow))
    traces[1].reference, traces[1].more_references = "one wording", ("another wording",)
    scores = {"BLEU": 12.3, "chrF": 45.6, "WER": 100.1, "AL": 1234.5, "LAAL": 1234.5}
    scores |= {"LAAL_CA": 2345.6, "DAL": 1234.5, "AP": 0.5, "RTF": 0.12}
    systems = [
        SystemResult(f"{n}: steps", n, scores, {"AL": "AL|unit:word"}, [], traces) for n in NAMES
    ]
    late = scores | {"LAAL": 1434.5, "LAAL_CA": 10_345.6}  # the last tick is a wide one
    systems.append(SystemResult("late", "late", late, {}, [], traces))
    path = tmp_path / "report.html"
    report(path, systems, spoken_clips(clips, "de", 20))
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace("<script>", f"<script>{MEASURE}</script><script>", 1))
    seen = look(path, tmp_path)
    assert len(seen) == len(VIEWS)
    for page, width in VIEWS:
        view = seen[f"{page} {width}"]
        assert view["needed"] <= view["room"] <= width
        assert view["clipped"] == []
        if page != "#/0":
            assert view["letters"] >= 11
        if page == "#/0/1":
            assert re.search(r"References\s+one wording\s+another wording\s+When", view["text"])
        if page.count("/") == 2:
            assert view["sound"] == 1
            assert f"„Wort“ & {page[-1]}" in view["text"]


def look(path, folder):
    """What Chromium measured of the page, by its part and width."""
    frames = [
        f'<iframe name="{page} {width}" width="{width}" height="844" style="border:0" '
        f'src="{path.name}{page}"></iframe>'
        for page, width in VIEWS
    ]
    top = folder / "frames.html"
    top.write_text(FRAMES.replace("</body>", "".join(frames) + "</body>"))
    dom = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", f"--user-data-dir={folder / 'profile'}"),
            *("--window-size=1400,900", "--virtual-time-budget=2000", "--dump-dom"),
            f"file://{top}",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    told = re.findall(r"<pre>(.*?)</pre>", dom, re.S)
    views = [json.loads(html.unescape(one)) for one in told]
    return {view["name"]: view for view in views}


def test_a_report_takes_no_more_than_a_tenth_of_the_time():
    """Of a large grid it holds ever more systems, and would be written after each of them."""
    now, written = 0.0, []

    def write():
        nonlocal now
        written.append(now)
        now += 2.0

    sparing = Sparing(write, lambda: now)
    for _ in range(10):
        now += 5.0
        sparing()
    assert written == [5.0, 27.0, 49.0]
    sparing(must=True)
    assert written[-1] == now - 2.0


@pytest.mark.parametrize(
    ("span", "step"), [(6, 1), (6.1, 2), (12, 2), (30, 5), (31, 10), (61, 20), (0.06, 0.01)]
)
def test_ticks_are_at_round_numbers_six_steps_apart_at_most(span, step):
    assert _round_step(span) == pytest.approx(step)


def test_a_report_says_of_how_many_clips_a_system_said_nothing(tmp_path):
    """Its latency is that of the others, and so is better than it should be."""
    said, silent = trace_of([("word0", 1)], "word0"), trace_of([], "word0")
    runs = {
        "": [said, replace(said, index=1)],
        "nothing was said of 1 clip": [said, replace(silent, index=1)],
        "nothing was said of 2 clips": [said, *(replace(silent, index=i) for i in (1, 2))],
    }
    for words, traces in runs.items():
        assert system_result(SETUP, Run(traces, []), Scorer.of("en")).notes == words
    both = Run(runs["nothing was said of 1 clip"], [Failure(3, "3.wav", "no")])
    system = system_result(SETUP, both, Scorer.of("en"))
    page, _ = report(tmp_path / "report.html", [system])
    assert "1 clip could not be interpreted, nothing was said of 1 clip<" in page
