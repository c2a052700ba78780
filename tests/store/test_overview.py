"""What a model can do on this machine, and what lies in folders that no entry names."""

import json

import pytest

from dragoman.store import catalogue, overview
from dragoman.store.catalogue import Model
from dragoman.store.home import File
from dragoman.store.kinds import Kind, is_needed, kind_of
from dragoman.store.overview import Row

WHISPER = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>"]


def row(name="toy", cost=None, memory=None, measured=True):
    model = Model("a toy", "translation", ("en",), "MIT", {}, name=name)
    return Row(model, None, memory, cost, measured)


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        *(("whisper-base", True), ("whisper-small-onnx", True)),
        *(("moonshine-tiny", True), ("moonshine-base", True)),
        *(("mt-en", True), ("opus-de-en", True), ("st-en", False), ("silero-vad", False)),
    ],
)
def test_recognisers_and_translators_work_on_a_gpu(name, gpu):
    assert Row(catalogue.model(name), None, None, None, True).on_gpu == gpu


@pytest.mark.parametrize(
    ("cost", "cores", "speed"),
    [
        *((0.5, 2, "fast"), (0.51, 2, "live"), (1.6, 2, "live"), (1.61, 2, "late")),
        *((0.25, 1, "fast"), (0.8, 1, "live"), (0.81, 1, "late"), (None, 1, None)),
    ],
)
def test_speed_is_told_for_the_processors_that_are_here(cost, cores, speed):
    assert row(cost=cost).speed(cores) == speed


@pytest.mark.parametrize(
    ("cores", "memory", "name"),
    [
        *((1, 10**12, "whisper-base"), (3, 10**12, "whisper-base"), (4, 10**12, "whisper-small")),
        *((4, None, "whisper-small"), (64, 3.9e9, "whisper-base"), (64, 4e9, "whisper-small")),
    ],
)
def test_the_best_that_keeps_up_with_half_of_the_machine(cores, memory, name):
    rows = [
        row("whisper-large-v3", 0.1, 0),
        row("whisper-small", 2.0, 10**9),
        row("whisper-base", 0.7, 4 * 10**8),
    ]
    assert overview.recommended(rows, cores, memory) == name


def test_the_memory_of_the_machine_is_asked_for(monkeypatch):
    """On a small machine it decides which model is recommended."""
    told = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr("os.sysconf", told.__getitem__, raising=False)
    assert overview.memory() == 4_096_000


def test_what_was_not_measured_is_estimated_from_the_size():
    rows = {row.model.name: row for row in overview.overview()}
    tiny, base, small = (rows[f"whisper-{size}"] for size in ("tiny.en", "base", "small"))
    assert tiny.measured
    assert base.measured
    assert not small.measured
    slope = (base.cost - tiny.cost) / (base.model.size - tiny.model.size)
    assert small.cost == pytest.approx(base.cost + slope * (small.model.size - base.model.size))
    slope = (base.memory - tiny.memory) / (base.model.size - tiny.model.size)
    grown = base.memory + slope * (small.model.size - base.model.size)
    assert small.memory == pytest.approx(grown, abs=1)
    assert tiny.cost < base.cost < small.cost < rows["whisper-large-v3"].cost
    assert rows["opus-en-de"].cost is None
    assert rows["kokoro"].cost == catalogue.model("kokoro").cost


def put(folder, words=WHISPER, vocabulary="vocabulary.txt", **files):
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(b"weights")
    text = json.dumps(words) if vocabulary.endswith(".json") else "\n".join(words)
    (folder / vocabulary).write_text(text, encoding="utf-8")
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_text(data)
    return folder


def test_folders_that_no_entry_names_are_listed_by_their_path(tmp_path, home, monkeypatch):
    ours = put(home / "models" / "prepared")
    theirs = put(tmp_path / "disk" / "mine")
    put(tmp_path / "disk" / "whisper-base")  # the catalogue has it
    (tmp_path / "disk" / "other").mkdir()
    (tmp_path / "disk" / "other" / "model.bin").write_bytes(b"?")
    monkeypatch.setenv("DRAGOMAN_WEIGHTS", str(tmp_path / "disk"))
    rows = overview.overview()[len(catalogue.names()) :]
    assert [row.model.name for row in rows] == [str(ours), str(theirs)]
    assert [row.path for row in rows] == [ours, theirs]
    assert rows[0].model.languages == ("en", "de")
    assert rows[0].model.size == len("\n".join(WHISPER)) + len("weights")
    assert not rows[0].partial


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("a/whisper", Kind("translation", ("en", "de"), ("en",))),
        ("a/whisper-large-v3-turbo", Kind("recognition", ("en", "de"))),
        ("a/distil-large-v3", Kind("recognition", ("en",))),
    ],
)
@pytest.mark.parametrize("vocabulary", ["vocabulary.txt", "vocabulary.json"])
def test_a_whisper(tmp_path, title, kind, vocabulary):
    assert kind_of(put(tmp_path / "toy", vocabulary=vocabulary), title) == kind


def test_a_whisper_of_one_language(tmp_path):
    words = [f"w{number}" for number in range(50256)] + WHISPER
    assert kind_of(put(tmp_path / "toy", words)) == Kind("recognition", ("en",))


@pytest.mark.parametrize(
    ("words", "title", "languages", "targets"),
    [
        (
            ["</s>", "deu_Latn", "zho_Hans", "zho_Hant", "zzz_Latn"],
            "a/nllb",
            *[("de", "zh", "zzz_Latn")] * 2,
        ),
        (["</s>", "__de__", "__yue__", "de"], "a/m2m100", *[("de", "yue")] * 2),
        (["</s>", "a"], "Helsinki-NLP/opus-mt-en-de", ("en",), ("de",)),
        (["</s>", "a"], "a/opus-mt-tc-big-en-pt-ct2", ("en",), ("pt",)),
        (["</s>", "a"], "a/opus-mt-tc-big-cat_oci_spa-en", ("mul",), ("mul",)),  # "tc" is none
        (["</s>", "a"], "a/something", ("mul",), ("mul",)),
    ],
)
@pytest.mark.parametrize("file", ["shared_vocabulary.json", "source_vocabulary.txt"])
def test_translators_of_text(tmp_path, words, title, languages, targets, file):
    kind = kind_of(put(tmp_path / "toy", words, file), title)
    assert kind == Kind("text translation", languages, targets)


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ('{"languages": {"source": "en", "target": "de"}}', Kind("translation", ("en",), ("de",))),
        ('{"languages": {"source": "en", "target": "en"}}', Kind("recognition", ("en",))),
        (
            '{"input": "text", "languages": {"source": "en", "target": "de"}}',
            Kind("text translation", ("en",), ("de",)),
        ),
        (
            '{"input": "states", "languages": {"source": "en", "target": "de,es"}}',
            Kind("translation", ("en",), ("de", "es")),
        ),
        ("not json", None),
        ("[]", None),
    ],
)
def test_exported_nets(tmp_path, config, kind):
    (tmp_path / "encoder.onnx").write_bytes(b"net")
    (tmp_path / "config.json").write_text(config)
    assert kind_of(tmp_path) == kind


def test_a_folder_without_a_model(tmp_path):
    assert kind_of(tmp_path) is None
    (tmp_path / "model.bin").write_bytes(b"?")
    assert kind_of(tmp_path) is None
    (tmp_path / "shared_vocabulary.txt").write_bytes(b"\xff\xfe")
    assert kind_of(tmp_path) is None


@pytest.mark.parametrize(
    "name",
    [
        *("model.bin", "config.json", "vocabulary.txt", "shared_vocabulary.json", "source.spm"),
        *("sentencepiece.bpe.model", "tokenizer.json", "preprocessor_config.json", "spm.model"),
    ],
)
def test_what_a_model_needs(name):
    assert is_needed(name)


@pytest.mark.parametrize(
    "name",
    [
        *("model.py", "pytorch_model.bin", "x.pkl", "x.pt", "model.safetensors", "README.md"),
        *("a/model.bin", "../model.bin", "model.bin\n", "xmodel.bin", "evil/../source.spm", ""),
    ],
)
def test_what_no_model_needs(name):
    assert not is_needed(name)


def test_the_kind_of_a_file_is_not_mistaken():
    assert File(1, "a").hash == "a"
    assert File(1, git="b").hash == "b"
