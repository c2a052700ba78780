"""A cascade whose translator does not read what is spoken goes by way of English."""

import pytest

from dragoman.audio.source import open_audio
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter, step
from dragoman.models import Sound
from dragoman.models.cascade.model import CascadeModel
from dragoman.models.whisper.model import WhisperModel
from dragoman.policies import make_policy
from dragoman.setup import Setup, System
from tests.models.test_whisper_real import TALK, weights
from tests.models.toy_whisper import ToyEngine, tones, vocabulary
from tests.models.word_for_word import WordForWord
from tests.scripted import ScriptedModel, chunks_of

WORDS = ["Red", "Green", "Blue.", "Green", "Red."]
GERMAN = " rot grün blau. grün rot."
LANGUAGES = ("en", "fr", "de", "ja")


class Ears(ScriptedModel):
    """Whatever is spoken, it writes English; or, of a model that copies, the words themselves."""

    hears = speaks = LANGUAGES

    def __init__(self, words=WORDS, *, copies=False) -> None:
        super().__init__([(word, 400.0 * (place + 1)) for place, word in enumerate(words)])
        self._copies, self.opened = copies, []

    def open(self, source, target, *, transcript=False):
        if target != source and (self._copies or target != "en"):
            raise DragomanError("It writes down what it hears.", advice="take --other.")
        self.opened.append((source, target))
        return super().open(source, target)


class Mouth(WordForWord):
    """Reads some languages, each told or not."""

    def __init__(self, *reads, alone="en") -> None:
        super().__init__()
        self._reads, self._alone = reads or ("en",), alone

    def between(self, source, target):
        source = source or self._alone
        if source is None:
            raise DragomanError("It has to know what it reads.", advice="say it with --from.")
        if source not in self._reads or target != "de":
            raise DragomanError(f"It reads no '{source}', or writes no '{target}'.")
        return source, target


def cascade(*reads, copies=False, **more) -> CascadeModel:
    return CascadeModel("ears+mouth", Ears(copies=copies), Mouth(*reads, **more))


@pytest.mark.parametrize(
    ("reads", "source", "opened", "pair", "through"),
    [
        (("en",), "fr", ("fr", "en"), ("en", "de"), "en"),
        (("en", "fr"), "fr", ("fr", "fr"), ("fr", "de"), None),
        (("en",), "en", ("en", "en"), ("en", "de"), None),
        (("en",), None, (None, "en"), ("en", "de"), "en"),
    ],
    ids=["through English", "directly", "from English", "whatever is spoken"],
)
def test_the_halves_meet_in_what_is_spoken_if_the_translator_reads_it(
    reads, source, opened, pair, through
):
    model = cascade(*reads)
    stream = model.open(source, "de")
    assert model._recogniser.opened == [opened]
    assert (stream.language, stream.pair, stream.through) == (source, pair, through)


def test_of_english_that_was_detected_the_transcript_is_no_translation():
    stream = cascade().open(None, "de")
    stream.speech.language = "ja"
    assert stream.through == "en"
    stream.speech.language = "en"
    assert stream.through is None


@pytest.mark.parametrize(
    ("model", "source", "target", "told"),
    [
        (cascade("ja"), "fr", "de", "It reads no 'fr', or writes no 'de'."),
        (cascade("ja"), "en", "de", "It reads no 'en', or writes no 'de'."),
        (cascade(), "fr", "es", "It reads no 'fr', or writes no 'es'."),
        (
            cascade(),  # not there and back again
            *("de", "de"),
            "Model 'ears+mouth' translates, and does not write down 'de'; a recogniser alone does: "
            "--model ears.",
        ),
        (cascade(alone=None), None, "de", "It has to know what it reads; say it with --from."),
        (
            cascade(copies=True),
            *("fr", "de"),
            "It reads no 'fr', or writes no 'de'; go by way of English: "
            "--model whisper-base+mouth.",
        ),
        (cascade(), "tlh", "de", "It reads no 'tlh', or writes no 'de'."),  # nor does Whisper
    ],
)
def test_what_cannot_be_had_is_refused_as_the_translator_puts_it(model, source, target, told):
    with pytest.raises(DragomanError) as refused:
        model.open(source, target)
    assert str(refused.value) == told


@pytest.mark.parametrize("hears", [(), ("en",)])
@pytest.mark.parametrize("copies", [False, True])
def test_whoever_hears_english_alone_detects_nothing(hears, copies):
    """Nor does who does not say what it hears."""
    model = cascade(copies=copies)
    model._recogniser.hears = hears
    assert model.open(None, "de").language == "en"
    with pytest.raises(DragomanError, match="reads no 'fr'"):
        model.open("fr", "de")


def test_whoever_writes_no_english_is_not_asked_for_it():
    model = cascade()
    model._recogniser.speaks = ("fr",)
    with pytest.raises(DragomanError, match="reads no 'fr'"):
        model.open("fr", "de")
    assert model.open(None, "de").language == "en"


def test_it_hears_what_it_can_translate():
    """A page offers no other."""
    assert cascade().hears == ("en", "fr", "ja")  # German only into German
    assert cascade(copies=True).hears == ("en",)
    assert cascade("en", "fr", copies=True).hears == ("en", "fr")
    silent = cascade(copies=True)
    silent._translator = WordForWord()
    silent._translator.speaks = ()  # it does not say what it writes
    assert silent.hears == LANGUAGES


def test_a_translator_of_another_language_alone_gets_that():
    model = cascade("fr", alone="fr")
    assert model.open(None, "de").language == "fr"
    assert model._recogniser.opened == [("fr", "fr")]


def test_who_copies_what_it_hears_takes_it_for_what_the_translator_reads():
    assert cascade(copies=True).open(None, "de").language == "en"


def test_streams_through_english_and_others_are_one_batch():
    model = CascadeModel("ears+mouth", Ears(), Mouth("en", "ja"))
    spoken = ["fr", "en", "ja", None]
    policy = make_policy("local-agreement")
    talks = [Interpreter(model, policy, source=one, target="de") for one in spoken]
    said, written = [""] * len(talks), [set() for _ in talks]
    for chunk in chunks_of(3000, 500):
        for place, update in enumerate(step(talks, [chunk] * len(talks))):
            assert update.error is None
            said[place] += "".join(update.said)
            if update.transcript:
                written[place].add((update.language, update.transcript_language))
    assert said == [GERMAN] * len(talks)
    assert written == [{("fr", "en")}, {("en", "en")}, {("ja", "ja")}, {(None, "en")}]


@pytest.mark.parametrize(("copies", "behind"), [(False, "mt-en"), (True, "nllb-600m")])
def test_whisper_tells_which_translator_would_do(copies, behind, monkeypatch):
    """One that reads English, if Whisper can translate into that; else one that can be had."""
    monkeypatch.setattr("dragoman.store.at_hand", lambda name: name == "mt-en" or None)
    model = WhisperModel("toy", ToyEngine(), vocabulary(), translates=not copies)
    with pytest.raises(DragomanError, match=f"put a translator behind it: --model toy.{behind}"):
        model.open("ja", "de")


def test_whisper_is_asked_to_translate_and_to_write_down_in_one_batch():
    """Of what is detected, whatever that is (the toy hears German)."""
    engine, known = ToyEngine(), vocabulary()
    model = CascadeModel("ears+mouth", WhisperModel("toy", engine, known), Mouth("en", "ja"))
    streams = [model.open(source, "de") for source in ("en", "ja", None)]
    model.hear(streams, [Sound(tones([1, 2, 3]), closing=True)] * 3)
    tasks = [
        ("en", known.transcribe),
        ("ja", known.transcribe),
        ("de", known.translate),
    ]
    assert [prompt.start for prompt, _ in engine.prompts] == [
        (known.start, known.languages[code], task, known.no_times) for code, task in tasks
    ]
    assert [one.language for one in streams] == ["en", "ja", "de"]
    assert [one.through for one in streams] == [None, None, "en"]


def test_a_system_knows_the_language_of_its_transcripts():
    def known(source, *reads):
        return System(Setup(source=source, target="de"), cascade(*reads)).transcript_language

    assert [known("fr"), known("fr", "fr"), known("en"), known(None)] == ["en", "fr", "en", "en"]


@pytest.mark.weights
@pytest.mark.parametrize("source", ["de", None])
def test_german_goes_into_spanish_by_the_models_that_are_taken_for_it(source):
    for name in ("whisper-base", "mt-en", "silero-vad"):
        weights(name)
    setup = Setup(source=source, target="es", threads=1).tuned(2000.0)
    system = System(setup.settled())
    assert system.setup.model == "whisper-base+mt-en"
    interpreter = system.interpreter(transcript=True)
    updates = list(interpreter.run(open_audio(TALK, step_ms=setup.step_ms)))
    said = "".join(word for update in updates for word in update.said).lower()
    written = "".join(word for update in updates for word in update.transcript).lower()
    assert all(word in said for word in ("montañas", "llu", "casa", "gracias")), said
    assert all(word in written for word in ("weather", "mountains", "rain", "thank you"))
    told = {(one.language, one.transcript_language) for one in updates if one.transcript}
    assert told == {("de", "en")}
