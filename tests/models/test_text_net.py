"""What an exported text net is asked, by hand: letters are its units, and the search is told what
to find."""

from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models.cascade import text_net as module
from dragoman.models.cascade.text_net import TextNet
from dragoman.models.cascade.translator import Sentence
from dragoman.models.exported.config import Languages
from dragoman.models.exported.net import BOS
from dragoman.models.exported.pieces import Pieces
from dragoman.models.options import Options
from dragoman.models.search import Found
from tests.models.word_for_word import translated

A, B, STOP, COMMA = 4, 5, 6, 7
WRITTEN = ("", "", "", "", "▁a", "▁b", ".", ",")


class Letters:
    """In place of SentencePiece."""

    def encode(self, text):
        return [ord(letter) for letter in text if letter != " "]

    def id_to_piece(self, number):
        return chr(number)

    def piece_to_id(self, piece):
        return {"<2de>": 1000, "<2es>": 1001}[piece]


class Asked:
    """A text net, and a diary of what its engine was asked."""

    def __init__(self, languages="de", *, plain=False, ended=True, **beams):
        config = SimpleNamespace(languages=Languages("en", languages), source_plain=plain)
        codes = languages.split(",")
        targets = {code: Pieces(WRITTEN, "prefix", language=code) for code in codes}
        self.net = TextNet("net", config, self, Letters(), targets, **beams)
        self.ended, self.batches = ended, []

    def speak(self, sources, prompts, beams):
        self.batches.append((sources, prompts, beams))
        self.ids, self.prompt, self.beams = sources[0], prompts[0], beams
        return [self.found(len(ids)) for ids in sources]

    def found(self, units):
        looks = np.arange(1, 3 * units + 1, dtype=np.float32).reshape(3, -1)
        return Found((A, B, STOP), (-0.1, -0.2, -0.3), tuple(looks), self.ended)


def test_all_pieces_are_read_and_looks_at_them_are_looks_at_their_words():
    asked = Asked()
    made = translated(asked.net, (" ab", " c."), (), closed=True, pair=("en", "de"))
    assert asked.ids == [*map(ord, "abc.")]
    assert (made.tokens, made.log_probs, made.ended) == ((A, B, STOP), (-0.1, -0.2, -0.3), True)
    assert made.attention.tolist() == [[1 + 2, 3 + 4], [5 + 6, 7 + 8], [9 + 10, 11 + 12]]


@pytest.mark.parametrize(("target", "tag"), [("de", 1000), ("es", 1001)])
def test_of_several_languages_a_tag_tells_which_and_is_nobodys(target, tag):
    asked = Asked("de,es")
    made = translated(asked.net, (" ab", " !"), (), closed=True, pair=("en", target))
    assert asked.ids == [tag, *map(ord, "ab!")]
    assert made.attention.tolist() == [[2 + 3, 4], [6 + 7, 8], [10 + 11, 12]]
    # The tag takes no room: ten, and two for each piece.
    assert asked.prompt.most == 10 + 2 * 3
    assert asked.net._units(("en", target)).language == target


@pytest.mark.parametrize(
    ("closed", "own", "beams", "guess"),
    [
        (True, {}, 5, ()),  # several texts follow no guess
        (False, {}, 1, (A,) * 11),  # one less than there is room for
        (True, {"beams": 1}, 1, (A,) * 11),
    ],
)
def test_what_is_open_is_searched_greedily_and_follows_a_guess(closed, own, beams, guess):
    asked = Asked(**own)
    said = (B, B)
    translated(asked.net, (" a!",), said, closed=closed, pair=("en", "de"), guess=(A,) * 40)
    assert (asked.prompt.start, asked.prompt.said, asked.prompt.most) == ((BOS,), said, 12)
    assert (asked.beams, asked.prompt.guess) == (beams, guess)


def test_a_sentence_that_is_open_gets_no_full_stop():
    asked = Asked()
    made = translated(asked.net, (" ab",), (), closed=False, pair=("en", "de"))
    assert (made.tokens, made.ended) == ((A, B), True)
    asked.ended = False
    made = translated(asked.net, (" ab",), (), closed=False, pair=("en", "de"))
    assert (made.tokens, made.ended) == ((A, B, STOP), False)


@pytest.mark.parametrize(
    ("words", "source", "closed", "read", "said"),
    [
        ((" ab",), "en", True, "ab.", (A, B, STOP)),  # over, though nobody wrote a full stop
        ((" ab,",), "en", True, "ab.", (A, B, COMMA)),  # it goes on in the next part
        ((" ab;",), "en", True, "ab.", (A, B)),  # and has no unit for its mark
        ((" ab?",), "en", True, "ab?", (A, B, STOP)),
        (("ab",), "zh", True, "ab。", (A, B, STOP)),
        ((" ab",), "en", False, "ab", (A, B)),  # it may go on
        ((" ab,",), "en", False, "ab,", (A, B)),
    ],
)
def test_what_is_over_is_read_with_a_full_stop(words, source, closed, read, said):
    asked = Asked()
    made = translated(asked.net, words, (), closed=closed, pair=(source, "de"))
    assert asked.ids == [*map(ord, read)]
    assert made.tokens == said
    assert made.attention.shape == (len(said), 1)


@pytest.mark.parametrize(
    ("found", "ended", "before", "said"),
    [
        ((A, STOP), True, (), (A, COMMA)),
        ((STOP,), True, (A,), (COMMA,)),  # all else was said
        ((STOP,), True, (A, COMMA), ()),  # the comma, too
        ((), True, (A, COMMA), ()),
        ((A,), True, (), (A,)),
        ((A, STOP, STOP), True, (), (A, COMMA)),
        ((A, STOP), False, (), (A, STOP)),  # it did not come to an end
    ],
)
def test_what_goes_on_in_the_next_part_keeps_its_comma(found, ended, before, said):
    looks = tuple(np.eye(3, dtype=np.float32)[: len(found)])
    one = Found(found, (-0.1, -0.2, -0.3)[: len(found)], looks, ended)
    made = module._with_comma(one, before, Pieces(WRITTEN, "prefix"), ",")
    assert made.tokens == said
    assert len(made.tokens) == len(made.log_probs) == len(made.looks)


def test_a_net_that_knows_no_full_stop_gets_none(monkeypatch):
    asked = Asked()
    monkeypatch.setattr(
        Letters, "encode", lambda self, text: [3 if c == "." else ord(c) for c in text]
    )
    translated(asked.net, ("ab",), (), closed=True, pair=("en", "de"))
    assert asked.ids == [*map(ord, "ab")]


@pytest.mark.parametrize(("words", "said"), [((" ",), ()), ((" a!",), (A,) * 14)])
def test_where_there_is_nothing_to_say_no_net_is_asked(words, said):
    asked = Asked()
    made = translated(asked.net, words, said, closed=True, pair=("en", "de"))
    assert (made.tokens, made.ended, made.attention.shape) == ((), bool(said), (0, 1))
    assert not hasattr(asked, "ids")
    translated(asked.net, (" a!",), (A,) * 13, closed=True, pair=("en", "de"))
    assert asked.prompt.most == 1  # the last that fits


@pytest.mark.parametrize(("plain", "read"), [(True, "abc"), (False, "Ab,c!")])
def test_a_net_reads_what_it_has_learned_to_read(plain, read):
    asked = Asked(plain=plain)
    translated(asked.net, (" Ab,", " c!"), (), closed=True, pair=("en", "de"))
    assert asked.ids == [*map(ord, read)]


def test_languages():
    net = Asked().net
    assert net.between(None, "de") == net.between("en", "de") == ("en", "de")
    with pytest.raises(DragomanError, match="'net' speaks 'de', not 'fr'"):
        net.between("en", "fr")
    net._config.languages = Languages()
    net._targets[""] = net._targets.pop("de")
    assert net.between("it", "fr") == ("it", "fr")
    assert net.words((A, B), ended=True, pair=("it", "fr")).words == (" a", " b")
    assert net.words((A, B), ended=False, pair=("it", "fr")).words == (" a",)
    with pytest.raises(DragomanError, match=r"'net' has to know .* say it with --from"):
        net.between(None, "fr")


@pytest.mark.parametrize(("codes", "keys"), [("de,es", ("de", "es")), ("", ("",))])
def test_a_folder_holds_a_net_and_its_units(tmp_path, monkeypatch, codes, keys):
    config = SimpleNamespace(input="text", languages=Languages("en", codes))
    monkeypatch.setattr(module.ExportedNet, "read", lambda folder: config)
    monkeypatch.setattr(module, "load_engine", lambda *given: given)
    monkeypatch.setattr(module, "open_units", lambda path: path)
    monkeypatch.setattr(Pieces, "of_target", lambda *what: what)
    options = Options(threads=3, beams=2)
    made = TextNet.load(tmp_path / "net", options=options)
    assert made._engine == (tmp_path / "net", config, options)
    assert made._source == tmp_path / "net" / "source.model"
    assert made._targets == {code: (tmp_path / "net", config, code) for code in keys}
    assert (made._name, made._beams) == ("net", 2)
    assert made.speaks == tuple(key for key in keys if key)
    assert TextNet.load(tmp_path, "named")._name == "named"
    config.input = "speech"
    with pytest.raises(DragomanError, match="holds a net that hears speech; it cannot read text"):
        TextNet.load(tmp_path)


def test_sentences_that_are_searched_alike_are_asked_for_together():
    asked, pair = Asked(), ("en", "de")
    sentences = [
        Sentence((" a",), pair, closed=False),
        Sentence((" b.",), pair),
        Sentence((" ",), pair),  # nothing
        Sentence((" abc",), pair, said=(A,), closed=False),
    ]
    made = asked.net.translate(sentences)
    assert [(sources, beams) for sources, _, beams in asked.batches] == [
        ([[ord("a")], [*map(ord, "abc")]], 1),
        ([[*map(ord, "b.")]], 5),
    ]
    assert [one.tokens for one in made] == [(A, B), (A, B, STOP), (), (A, B)]
    assert asked.net.translate([]) == []
