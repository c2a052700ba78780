"""Text models in CTranslate2's format: small ones of random weights, with their tokenizers."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE, Chunk
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models import options as options_module
from dragoman.models.cascade.owners import Owned
from dragoman.models.cascade.tags import Tags
from dragoman.models.cascade.text_files import open_tokenizer, read_config, read_vocabulary
from dragoman.models.cascade.text_model import (
    TextModel,
    TextUnits,
    _Reading,
)
from dragoman.models.cascade.translator import Sentence
from dragoman.models.load import load_model
from dragoman.models.options import Options
from dragoman.policies import make_policy

from . import made_translator as made
from . import made_whisper
from .word_for_word import translated

PAIR = ("en", "de")
WORDS = ("The", " red", " house", " stands", " by", " the", " sea.")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("text")
    return {
        "opus": made.opus(root / "opus-en-de"),
        "opus-eos": made.opus(root / "opus-eos", source_eos=True),
        "opus-many": made.opus(root / "opus-many", tags=(">>deu<<", ">>fra<<"), seed=2),
        "nllb": made.nllb(root / "nllb"),
        "m2m": made.m2m(root / "m2m"),
    }


FAMILIES = ["opus", "opus-eos", "opus-many", "nllb", "m2m"]


@pytest.fixture(scope="module")
def models(folders) -> dict[str, TextModel]:
    return {name: TextModel.load(folders[name], name, Options(threads=1)) for name in folders}


def test_what_it_speaks(models):
    assert models["opus-many"].speaks == ("de", "fr")
    assert models["opus"].speaks == ()  # it does not say


def source_of(family: str, pieces: list[str]) -> list[str]:
    """As the documentation of each family has it."""
    before = {"nllb": ["eng_Latn"], "m2m": ["__en__"], "opus-many": [">>deu<<"]}
    after = [] if family == "opus-eos" else ["</s>"]
    return [*before.get(family, []), *pieces, *after]


def target_of(family: str) -> list[str]:
    return {"nllb": ["deu_Latn"], "m2m": ["__de__"]}.get(family, [])


def pieces_of(folder: Path, family: str) -> list[str]:
    import sentencepiece

    spm = folder / ("source.spm" if "opus" in family else "sentencepiece.bpe.model")
    reads = sentencepiece.SentencePieceProcessor(model_file=str(spm))
    return reads.encode("".join(WORDS), out_type=str)


def directly(folder: Path, family: str, beams: int) -> tuple[list[str], list[float], np.ndarray]:
    """The translation by CTranslate2 itself: its pieces, their log-probabilities, attention."""
    import ctranslate2

    pieces = pieces_of(folder, family)
    net = ctranslate2.Translator(str(folder), compute_type="int8")
    source, prefix = source_of(family, pieces), target_of(family)
    result = net.translate_batch(
        [source],
        target_prefix=[prefix],
        beam_size=beams,
        return_attention=True,
        max_decoding_length=len(prefix) + 10 + 2 * len(pieces),
    )[0]
    scored = net.score_batch([source], [result.hypotheses[0]])[0]
    skip = len(prefix)
    return result.hypotheses[0][skip:], scored.log_probs[skip:], np.array(result.attention[0])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("closed", [True, False])
def test_a_translation_is_ctranslate2s_own(folders, models, family, closed):
    found = translated(models[family], WORDS, (), closed=closed, pair=PAIR)
    pieces, log_probs, _ = directly(folders[family], family, 5 if closed else 1)
    names = json.loads((folders[family] / "shared_vocabulary.json").read_text())
    kept = len(found.tokens)
    assert kept > 0
    assert [names[token] for token in found.tokens] == pieces[:kept]
    np.testing.assert_allclose(found.log_probs, log_probs[:kept], atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_is_over_the_words(folders, models, family):
    """By hand: the shares of the pieces of each word, which begins with a space, added up;
    languages and the end belong to no word."""
    found = translated(models[family], WORDS, (), closed=True, pair=PAIR)
    _, _, attention = directly(folders[family], family, 5)
    pieces = pieces_of(folders[family], family)
    begin = source_of(family, pieces).index(pieces[0])
    expected = np.zeros((len(found.tokens), len(WORDS)))
    for row in range(len(found.tokens)):
        word = -1
        for place, piece in enumerate(pieces):
            word += piece.startswith("▁")
            expected[row, word] += attention[len(target_of(family)) + row, begin + place]
    np.testing.assert_allclose(found.attention, expected, atol=1e-5)
    assert len(found.tokens) > 2


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(family=st.sampled_from(FAMILIES), count=st.integers(0, 6))
def test_what_was_said_is_continued(models, family, count):
    """Said in two parts, greedily, a translation is the same as at once."""
    model = models[family]
    whole = translated(model, WORDS, (), closed=False, pair=PAIR)
    said = whole.tokens[:count]
    rest = translated(model, WORDS, said, closed=False, pair=PAIR)
    assert (*said, *rest.tokens)[: len(whole.tokens)] == whole.tokens
    np.testing.assert_allclose(
        rest.log_probs[: len(whole.tokens) - len(said)], whole.log_probs[len(said) :], atol=0.02
    )


def test_the_target_language_is_told(models):
    into = {
        to: translated(models["nllb"], WORDS, closed=True, pair=("en", to)).tokens
        for to in ("de", "zh")
    }
    assert into["de"] != into["zh"]


def test_words_are_those_of_the_target_language(models):
    model = models["nllb"]
    names = model._names
    tokens = [names.index(piece) for piece in ("▁the", "▁s", "e", "a", ".", "</s>", "deu_Latn")]
    spaced = model.words(tokens, ended=True, pair=PAIR)
    assert (spaced.words, spaced.ends) == ((" the", " sea."), (1, 7))
    assert model.words(tokens[:4], ended=False, pair=PAIR).tail == " sea"
    unspaced = model.words(tokens[:5], ended=True, pair=("en", "zh"))
    assert unspaced.words == (" the", " s", "e", "a", ".")


def test_more_than_a_source_can_hold_is_not_gone_on_with(folders, models):
    """Ten tokens and two for each piece, and no more."""
    pieces = len(pieces_of(folders["opus"], "opus"))
    said = tuple(5 + place % 7 for place in range(10 + 2 * pieces))
    found = translated(models["opus"], WORDS, said, closed=False, pair=PAIR)
    assert (found.tokens, found.ended, found.attention.shape) == ((), True, (0, len(WORDS)))
    assert len(translated(models["opus"], WORDS, said[1:], closed=False, pair=PAIR).tokens) <= 1


def test_as_many_beams_as_the_options_say(folders):
    """Only what is closed is searched with them."""
    model = TextModel.load(folders["m2m"], "m2m", Options(threads=1, beams=2))
    names = json.loads((folders["m2m"] / "shared_vocabulary.json").read_text())
    for closed, beams in ((True, 2), (False, 1)):
        found = translated(model, WORDS, (), closed=closed, pair=PAIR)
        pieces, _, _ = directly(folders["m2m"], "m2m", beams)
        assert [names[token] for token in found.tokens] == pieces[: len(found.tokens)]


class Translators:
    """In place of CTranslate2's translators: tells what they are asked for."""

    def __init__(self, monkeypatch, *, gpu=True, works=True) -> None:
        import ctranslate2

        self.told, self.works = [], works
        monkeypatch.setattr(ctranslate2, "Translator", self.make)
        monkeypatch.setattr(options_module, "why_no_gpu", lambda: None if gpu else "none here")
        monkeypatch.setattr(options_module, "gpu_found", lambda: gpu)

    def make(self, *where, **more):
        self.told.append(more)
        return self

    def translate_batch(self, sources, **more):
        assert sources == [["</s>"]]
        if not self.works:
            raise RuntimeError("libcublas is not found")


@pytest.mark.parametrize(
    ("given", "device", "compute"),
    [
        ({"compute": "float32"}, "cpu", "float32"),
        ({}, "cpu", "int8"),
        ({"compute": "bfloat16"}, "cpu", "float32"),
    ],
)
def test_a_net_computes_as_the_options_say(folders, monkeypatch, given, device, compute):
    made = Translators(monkeypatch, gpu=False)
    TextModel.load(folders["nllb"], "nllb", Options(threads=3, **given))
    assert made.told == [{"device": device, "compute_type": compute, "intra_threads": 3}]


@pytest.mark.parametrize(
    ("given", "works", "devices"),
    [
        ({}, True, [("cuda", "float16")]),
        ({"compute": "bfloat16"}, True, [("cuda", "bfloat16")]),
        ({"compute": "int8"}, True, [("cpu", "int8")]),
        ({"device": "cpu"}, True, [("cpu", "int8")]),
        ({"device": "cuda"}, True, [("cuda", "float16")]),
        ({}, False, [("cuda", "float16"), ("cpu", "int8")]),  # there, but not for CTranslate2
    ],
)
def test_it_works_on_a_gpu_that_it_can_use(folders, monkeypatch, given, works, devices):
    made = Translators(monkeypatch, works=works)
    TextModel.load(folders["nllb"], "nllb", Options(**given))
    assert [(one["device"], one["compute_type"]) for one in made.told] == devices


def test_a_gpu_that_was_asked_for_and_cannot_be_used_is_a_sentence(folders, monkeypatch):
    Translators(monkeypatch, works=False)
    with pytest.raises(DragomanError, match=r"onto the GPU: libcublas .*; --device cpu may"):
        TextModel.load(folders["nllb"], "nllb", Options(device="cuda"))


class Canned:
    """In place of CTranslate2's translator: says what it is told to."""

    def __init__(self, text):
        self.text = text

    def translate_batch(self, sources, **more):
        self.asked = sources, more
        rows = [[float(place)] * len(sources[0]) for place in range(len(self.text))]
        return [SimpleNamespace(hypotheses=[self.text], attention=[rows])]

    def score_batch(self, sources, targets):
        assert sources == self.asked[0]
        self.scored = targets
        return [SimpleNamespace(log_probs=[-place / 10 for place in range(len(self.text) + 1)])]


@pytest.mark.parametrize(
    ("prefix", "text", "new", "ended"),
    [
        (["▁the"], ["▁the", "▁s", "e", "</s>"], ["▁s", "e"], True),
        (["▁the"], ["▁the", "▁s", "e"], ["▁s", "e"], False),
        (["deu_Latn", "▁the"], ["deu_Latn", "▁the", "</s>"], [], True),
        ([], ["▁s", "</s>"], ["▁s"], True),
        ([], [], [], False),
    ],
)
def test_what_was_found_follows_what_was_said(models, monkeypatch, prefix, text, new, ended):
    model, net = models["nllb"], Canned(text)
    monkeypatch.setattr(model, "_net", net)
    owned = Owned([0, 0], 1, begin=0)
    reading = _Reading(["▁a", "▁b"], prefix, limit=len(prefix) + 7, beams=3, owned=owned)
    (found,) = model._search([reading])
    begin, end = len(prefix), len(prefix) + len(new)
    assert found.tokens == tuple(model._names.index(piece) for piece in new)
    assert found.ended is ended
    assert [look.tolist() for look in found.looks] == [[at, at] for at in range(begin, end)]
    assert found.log_probs == tuple(-at / 10 for at in range(begin, end))
    assert net.scored == [[*prefix, *new]]
    assert net.asked == (
        [["▁a", "▁b"]],
        {
            "target_prefix": [prefix],
            "beam_size": 3,
            "max_decoding_length": len(prefix) + 7,
            "return_attention": True,
            "return_end_token": True,
        },
    )


SENTENCES = st.builds(
    Sentence,
    st.integers(0, len(WORDS)).map(lambda count: WORDS[:count]),
    st.just(PAIR),
    said=st.lists(st.integers(5, 11), max_size=9).map(tuple),
    closed=st.booleans(),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(family=st.sampled_from(FAMILIES), sentences=st.lists(SENTENCES, max_size=6))
def test_sentences_do_not_change_each_other(models, family, sentences):
    """Shorter and longer ones, begun and not, that may go on and not."""
    together = models[family].translate(sentences)
    assert len(together) == len(sentences)
    for one, sentence in zip(together, sentences, strict=True):
        (alone,) = models[family].translate([sentence])
        assert (one.tokens, one.ended) == (alone.tokens, alone.ended)
        np.testing.assert_allclose(one.log_probs, alone.log_probs, atol=1e-4)
        np.testing.assert_allclose(one.attention, alone.attention, atol=1e-4)


def test_pieces_as_text():
    names = ("", "▁a", "b", "▁", ".")
    assert TextUnits(names, spaced=True).text([1, 2, 0, 3, 1, 4]) == " ab  a."
    assert TextUnits(names, spaced=False).text([1, 2, 0, 3, 1, 4]) == " ab  a."


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("▁我", "住", "在", "▁New", "▁York", "。"), "我住在 New York。"),
        (("▁", "东", "京", "▁", "很", "好", "▁,"), "东京很好,"),
        (("▁", "สวัสดี", "▁", "ครับ"), " สวัสดี ครับ"),  # a sentence follows the one before it
        (("▁ยินดี", "ที่", "▁ได้", "รู้จัก"), " ยินดีที่ ได้รู้จัก"),
    ],
)
def test_a_language_without_spaces_between_words_has_those_between_other_things(names, text):
    words = TextUnits(names, spaced=False).words(range(len(names)), ended=True)
    assert "".join(words.words) == text
    assert len(words.words) == sum(name != "▁" for name in names)


def test_a_vocabulary_is_a_list_or_lines(tmp_path: Path):
    (tmp_path / "target_vocabulary.txt").write_text("a\n\n▁b\n", encoding="utf-8")
    assert read_vocabulary(tmp_path) == ("a", "", "▁b")
    (tmp_path / "shared_vocabulary.txt").write_text("x\ny", encoding="utf-8")
    assert read_vocabulary(tmp_path) == ("x", "y")
    (tmp_path / "shared_vocabulary.json").write_text('["é", "ü"]', encoding="utf-8")
    assert read_vocabulary(tmp_path) == ("é", "ü")
    for text in ("[", "5", '{"a": 0}'):
        (tmp_path / "shared_vocabulary.json").write_text(text, encoding="utf-8")
        with pytest.raises(DragomanError, match="Cannot read the vocabulary"):
            read_vocabulary(tmp_path)


def test_what_is_read_has_a_tokenizer_of_its_own(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("dragoman.models.exported.pieces.open_units", lambda path: path.name)
    (tmp_path / "spm.model").write_bytes(b"")
    assert open_tokenizer(tmp_path) == "spm.model"
    (tmp_path / "target.spm").write_bytes(b"")
    assert open_tokenizer(tmp_path) == "spm.model"  # half a pair is none
    (tmp_path / "source.spm").write_bytes(b"")
    assert open_tokenizer(tmp_path) == "source.spm"


def test_settings_that_are_none(tmp_path: Path):
    with pytest.raises(DragomanError, match=r"Cannot read .*config\.json"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(DragomanError, match="not the settings of a text model"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text('{"eos_token": "</s>"}')
    assert read_config(tmp_path) == {"eos_token": "</s>"}


def test_nothing_is_made_of_nothing(models):
    found = translated(models["opus"], (" ",), (), closed=True, pair=PAIR)
    assert found.tokens == ()
    assert not found.ended


@pytest.mark.parametrize(
    ("family", "pair", "sentence"),
    [
        ("nllb", ("en", "sw"), "does not know the language 'sw'; it knows en, de, zh"),
        ("m2m", ("ja", "de"), "does not know the language 'ja'"),
        ("opus-many", ("en", "es"), "does not know the language 'es'; it knows de, fr"),
        ("nllb", (None, "de"), "say it with --from"),
    ],
)
def test_an_unknown_pair_is_a_sentence(models, family, pair, sentence):
    with pytest.raises(DragomanError, match=sentence):
        models[family].between(*pair)


def test_a_pair_in_the_name_is_the_only_one(folders):
    model = TextModel.load(folders["opus"], "opus-mt-en-de", Options(threads=1))
    assert model.between(None, "de") == ("en", "de")
    with pytest.raises(DragomanError, match="from 'en' into 'de', not from 'en' into 'fr'"):
        model.between("en", "fr")


def test_codes_of_both_kinds_are_understood():
    tags = Tags.of(["a", "zho_Hans", "zho_Hant", "deu_Latn"], "")
    assert tags.told("n", "de", "zh") == (["deu_Latn"], ["zho_Hans"])
    assert tags.told("n", "deu_Latn", "zho_Hant") == (["deu_Latn"], ["zho_Hant"])
    assert tags.told("n", "zho", "deu") == (["zho_Hans"], ["deu_Latn"])
    assert Tags.of(["a", ">>por_BR<<", ">>spa<<"], "").told("n", "en", "pt") == ([">>por_BR<<"], [])
    scripts = Tags.of([">>yue_Hans<<", ">>yue_Hant<<", ">>srp_Cyrl<<", ">>srp_Latn<<"], "")
    for code, token in (("yue", ">>yue_Hans<<"), ("sr", ">>srp_Cyrl<<"), ("srp", ">>srp_Cyrl<<")):
        assert scripts.told("n", "en", code) == ([token], [])  # the first of several
    assert Tags.of(["a", "b"], "some folder").told("n", "xx", "yy") == ([], [])


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("opus-mt-en-de", ("en", "de")),
        ("opus-en-de", ("en", "de")),
        ("opus-mt-tc-big-deu-eng", ("de", "en")),  # our own codes
        ("opus-mt-tc-base-xx-en", ("xx", "en")),  # or theirs, where there is none
        ("opus-mt-mul-en", None),  # a group of languages is none
        ("opus-mt-en-roa", None),
        ("opus-mt-tc-big-cat_oci_spa-en", None),  # several are none
        ("opus-mt-tc-bible-big-roa-en", None),
        ("opus-mt-mt-en", ("mt", "en")),  # Maltese
        ("some folder", None),
        ("en-de", None),
    ],
)
def test_a_name_may_tell_the_pair(name, pair):
    tags = Tags.of(["a", "b"], name)
    assert tags.pair == pair
    assert tags.languages == (pair[1:] if pair else ())
    if pair:
        assert tags.told(name, *pair) == ([], [])
        for other in ((pair[0], "fr"), ("fr", pair[1])):
            with pytest.raises(DragomanError, match=f"into '{pair[1]}', not from '{other[0]}'"):
                tags.told(name, *other)


def test_an_error_names_twelve_languages_and_counts_the_others():
    codes = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "zh", "ja", "ko", "ar", "tr"]
    for count, sentence in ((12, r"it knows en, .*, ko\.$"), (14, r", ko and 2 more\.$")):
        tags = Tags.of([f"__{code}__" for code in codes[:count]], "")
        assert tags.languages == tuple(codes[:count])
        with pytest.raises(DragomanError, match=sentence):
            tags.told("n", "en", "sw")


def test_a_folder_that_lacks_something_is_a_sentence(tmp_path: Path):
    folder = made.opus(tmp_path / "opus-de-en")
    (folder / "target.spm").unlink()
    with pytest.raises(DragomanError, match=r"no tokenizer: put the original model's source\.spm"):
        TextModel.load(folder, "x", Options())
    folder = made.m2m(tmp_path / "m2m")
    (folder / "sentencepiece.bpe.model").write_bytes(b"nonsense")
    with pytest.raises(DragomanError, match="is not a SentencePiece model"):
        TextModel.load(folder, "x", Options())
    folder = made.nllb(tmp_path / "nllb")
    (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:500])
    with pytest.raises(DragomanError, match="Cannot load a text model"):
        TextModel.load(folder, "x", Options())
    (folder / "shared_vocabulary.json").unlink()
    with pytest.raises(DragomanError, match="no shared_vocabulary"):
        TextModel.load(folder, "x", Options())


def test_any_recogniser_with_any_translator_is_a_model(folders, tmp_path: Path):
    """Two folders by their names, through the whole loop."""
    heard = made_whisper.make(tmp_path / "whisper")
    for family, target in (("opus", "de"), ("nllb", "zh"), ("m2m", "fr")):
        model = load_model(f"{heard}+{folders[family]}", threads=1, beams=2)
        interpreter = Interpreter(model, make_policy("greedy"), source="en", target=target)
        # Of three seconds a net of chance would be told that they are hardly English.
        sound = np.random.default_rng(0).standard_normal(2 * RATE).astype(np.float32)
        pieces = [sound[at : at + RATE] for at in range(0, len(sound), RATE)]
        updates = [interpreter.hear(Chunk(p, p is pieces[-1])) for p in pieces]
        assert "".join(word for update in updates for word in update.said)
        assert "".join(word for update in updates for word in update.transcript)


def test_halves_in_the_wrong_place_are_a_sentence(folders, tmp_path: Path):
    heard = made_whisper.make(tmp_path / "whisper")
    with pytest.raises(DragomanError, match="reads text; it cannot hear"):
        load_model(str(folders["opus"]))
    with pytest.raises(DragomanError, match="hears speech; it cannot read text"):
        load_model(f"{heard}+{heard}")
    cascade = load_model(f"{heard}+{folders['nllb']}", threads=1)
    with pytest.raises(DragomanError, match="does not know the language 'fr'"):
        cascade.open("en", "fr")
