import io

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.text.units import join_pieces, marking_of, whole_words, word_ends

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
    pieces = pieces_of(words, marking)
    found = whole_words(pieces, marking, finished=True)
    assert found.words == tuple(words)
    assert found.pieces == len(pieces)
    assert join_pieces(pieces, marking) == " ".join(words)


@given(SENTENCES, st.sampled_from(["prefix", "suffix", "joined"]), st.integers(0, 40))
def test_a_word_that_is_over_never_changes(words, marking, cut):
    pieces = pieces_of(words, marking)[:cut]
    found = whole_words(pieces, marking)
    assert found.words == tuple(words[: len(found.words)])
    rest = join_pieces(pieces[found.pieces :], marking)
    assert " " not in rest
    assert "".join(words).startswith("".join(found.words) + rest)


@given(SENTENCES.filter(bool), st.sampled_from(["suffix", "joined"]))
def test_marked_ends_are_seen_without_waiting(words, marking):
    assert whole_words(pieces_of(words, marking), marking).words == tuple(words)
    assert whole_words(pieces_of(words, "prefix"), "prefix").words == tuple(words[:-1])


@pytest.mark.parametrize("marking", ["prefix", "suffix"])
def test_the_marking_of_a_vocabulary(marking):
    model = MODELS[marking]
    assert marking_of(model.id_to_piece(i) for i in range(len(model))) == marking
    assert marking_of(joined_pieces(["translation", "works"], 3)) == "joined"
    with pytest.raises(DragomanError, match="no word boundaries"):
        marking_of(["a", "b"])
