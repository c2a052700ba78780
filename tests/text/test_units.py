import io

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.units import SPACES, word_ends

TEXTS = [
    f"{a} {b} {c} translation works while the speaker speaks" for a in ("the", "a", "one")
    for b in ("quick", "slow", "small") for c in ("interpreter", "listener", "reader")
]  # fmt: skip


def trained(suffix):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        treat_whitespace_as_suffix=suffix,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


MODELS = {"prefix": trained(False), "suffix": trained(True)}
SENTENCES = st.lists(
    st.sampled_from(["the", "quick", "translation", "speaker", "listens", "zebra", "a"]),
    max_size=8,
)


def joined_pieces(words, cut):
    """Words in pieces of at most `cut` letters, marked as subword-nmt does."""
    pieces = []
    for word in words:
        parts = [word[at : at + cut] for at in range(0, len(word), cut)]
        pieces += [f"{part}@@" for part in parts[:-1]] + parts[-1:]
    return pieces


def pieces_of(words, marking, cut=3):
    if marking == "joined":
        return joined_pieces(words, cut)
    return MODELS[marking].encode(" ".join(words), out_type=str)


def text_of(pieces):
    text = "".join(pieces).replace("@@", "")
    for space in SPACES:
        text = text.replace(space, "")
    return text


def whole_words(pieces, marking, finished=False):
    """The words that are over, and what is left of the pieces."""
    words, begin = [], 0
    for index, ends in enumerate(word_ends(pieces, marking, finished)):
        if ends:
            words.append(text_of(pieces[begin : index + 1]))
            begin = index + 1
    return words, pieces[begin:]


@pytest.mark.parametrize(
    ("pieces", "marking", "ends"),
    [
        (["▁trans", "lation", "▁works"], "prefix", [False, True, False]),
        (["trans", "lation▁", "works▁"], "suffix", [False, True, True]),
        (["trans@@", "lation", "works"], "joined", [False, True, True]),
        ([" trans", "lation", " works", "."], "prefix", [False, True, False, False]),
        (["ĠIt", "'s", "Ġso"], "prefix", [False, True, False]),
        ([], "prefix", []),
    ],
)
def test_where_words_end(pieces, marking, ends):
    assert word_ends(pieces, marking) == ends
    assert word_ends(pieces, marking, finished=True) == ends[:-1] + [True] * bool(ends)


@given(SENTENCES, st.sampled_from(["prefix", "suffix", "joined"]))
def test_finished_pieces_give_all_words(words, marking):
    assert whole_words(pieces_of(words, marking), marking, finished=True) == (words, [])


@given(SENTENCES, st.sampled_from(["prefix", "suffix", "joined"]), st.integers(0, 40))
def test_a_word_that_is_over_never_changes(words, marking, cut):
    pieces = pieces_of(words, marking)[:cut]
    found, rest = whole_words(pieces, marking)
    assert found == words[: len(found)]
    following = words[len(found)] if len(found) < len(words) else ""
    assert following.startswith(text_of(rest))


@given(SENTENCES.filter(bool), st.sampled_from(["suffix", "joined"]))
def test_marked_ends_are_seen_without_waiting(words, marking):
    assert whole_words(pieces_of(words, marking), marking)[0] == words
    assert whole_words(pieces_of(words, "prefix"), "prefix")[0] == words[:-1]
