"""Cutting a talk's output by the reference: golden cases, brute force, what always holds."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.metrics import alignment, edits
from dragoman.metrics.resegment import ALIGNERS, Cutting, _moses, cut, cut_all
from dragoman.metrics.similarity import Similarities, similarity
from tests.golden import golden_json

words = st.sampled_from(["a", "b", "ab", "abc", "Haus", "häuser", "-", ".", "x1", "…", "Ä"])
sentences = st.lists(words, max_size=5).map(" ".join)
talks = st.tuples(st.lists(words, max_size=14), st.lists(sentences, min_size=1, max_size=5))


def pieces(units, references, **options):
    cuts = cut(units, references, Cutting(**options))
    return [units[begin:end] for begin, end in itertools.pairwise(cuts)]


def test_soft_cuts_equal_the_golden_ones():
    cases = golden_json("softsegmenter_segments.json")
    assert len(cases) == 17
    for case in cases:
        text, unit = case["hypothesis"], case["unit"]
        units, joint = (text.split(), " ") if unit == "word" else (list(text), "")
        parts = pieces(units, case["references"], unit=unit, aligner="soft")
        assert [joint.join(part) for part in parts] == case["segments"], case["id"]


def test_fewest_errors_cuts_equal_the_golden_ones():
    cases = golden_json("mweralign_segments.json")
    assert len(cases) == 17
    for case in cases:
        text, unit = case["hypothesis"], case["unit"]
        units = text.split() if unit == "word" else list(text)
        parts = pieces(units, case["references"], unit=unit, aligner="mwer")
        if unit == "word":
            expected = [segment.split() for segment in case["segments"]]
        else:
            expected = [list(s.replace(" ", "")) for s in case["segments_tokenised"]]
        assert parts == expected, case["id"]


# --- fewest word errors ---------------------------------------------------------------------------


def edit_distance(one, other):
    row = list(range(len(other) + 1))
    for i, x in enumerate(one, 1):
        above, row = row, [i]
        for j, y in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def all_cuts(length, parts):
    for inner in itertools.combinations_with_replacement(range(length + 1), parts - 1):
        yield [0, *inner, length]


def errors(units, references, cuts):
    """Word errors, plus 1 for every sentence that is left before anything is said."""
    lead = sum(end == 0 for end in cuts[1:-1]) if units else 0
    parts = zip(references, itertools.pairwise(cuts), strict=True)
    return lead + sum(edit_distance(r.split(), units[b:e]) for r, (b, e) in parts)


letters = st.sampled_from("abc")


@given(
    st.lists(letters, min_size=1, max_size=6),
    # mweralign's head cost falls on the tokens that follow, so the last sentence has some.
    st.lists(st.lists(letters, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=4),
)
def test_no_other_cuts_have_fewer_errors(units, references):
    cuts = cut(units, references, Cutting(aligner="mwer"))
    fewest = min(
        errors(units, references, other) for other in all_cuts(len(units), len(references))
    )
    assert errors(units, references, cuts) == fewest


def test_case_is_ignored_in_ascii_only():
    assert pieces(["B", "A"], ["x b", "a"], aligner="mwer") == [["B"], ["A"]]
    # With ä for Ä nothing matches, so the word stays as far left as it can.
    assert pieces(["q", "ä"], ["x y", "Ä"], aligner="mwer") == [["q", "ä"], []]
    assert pieces(["q", "ä"], ["x y", "ä"], aligner="mwer") == [["q"], ["ä"]]


# --- shared letters -------------------------------------------------------------------------------


@given(words, words)
def test_similarity_is_symmetric_and_at_most_one(one, other):
    for unit in ("word", "char"):
        value = similarity(one, other, unit)
        assert value == similarity(other, one, unit)
        assert value <= 1
        assert similarity(one, one, unit) == 1


MANY = [chr(0x4E00 + place) for place in range(129)]  # more letters than a number has bits


@given(st.lists(words, min_size=1, max_size=6), st.lists(words, min_size=1, max_size=6))
@example(["".join(pair) for pair in zip(MANY, MANY[63:], strict=False)], MANY[62:66])
def test_the_matrix_of_similarities_equals_the_plain_function(reference, hypothesis):
    for unit in ("word", "char"):
        block = Similarities([(reference, hypothesis)], unit)(0, len(reference))[:, :, 0]
        plain = [[similarity(r, h, unit) for h in hypothesis] for r in reference]
        assert np.array_equal(block, plain)


def test_similarity_by_hand():
    assert similarity("haus", "häuser", "word") == 3 / 7  # h u s of h a ä e r u s
    assert similarity("abc", "cab", "word") == 1
    assert similarity(".", "a", "word") == -np.inf
    assert similarity("abc", "cab", "char") == 0


def test_a_lost_sentence_leaves_its_piece_empty():
    assert pieces(["general", "kenobi"], ["hello there", "general kenobi"]) == [
        [],
        ["general", "kenobi"],
    ]


def test_inserted_words_go_to_the_neighbour_they_resemble():
    references = ["one two three", "four five six"]
    units = ["one", "two", "three", "thrice", "fours", "four", "five", "six"]
    assert pieces(units, references) == [units[:4], units[4:]]


def test_case_and_width_are_no_difference():
    assert pieces(["B"], ["a", "b", "c"]) == [[], ["B"], []]
    assert pieces(["ｂ"], ["A", "B", "C"]) == [[], ["ｂ"], []]


def test_stray_punctuation_at_the_start_is_kept_unless_asked():
    units, references = ["-", "the", "cat"], ["the cat"]
    assert cut(units, references) == [0, 3]
    assert cut(units, references, Cutting(drop_unplaced=True)) == [1, 3]


def test_moses_rules_split_punctuation_off():
    pytest.importorskip("sacremoses")
    units = ["ja", "nein", ",", "gut"]
    references = ["ja nein,", "gut"]
    assert pieces(units, references, language="de") == [["ja", "nein", ","], ["gut"]]
    assert cut(["20,", "a"], ["20,", "a"], Cutting(language="de")) == [0, 1, 2]
    units, references = ["a", ",", "b"], ["a", ",b"]
    assert pieces(units, references, language="de") == [["a"], [",", "b"]]
    for language in (None, "zh", "ja"):  # which have no such rules
        assert pieces(units, references, language=language) == [["a", ","], ["b"]]


# --- both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("aligner", ALIGNERS)
@pytest.mark.parametrize("unit", ["word", "char"])
@given(talk=talks)
def test_the_pieces_are_the_output_cut_in_order(aligner, unit, talk):
    units, references = talk
    if unit == "char":
        units = list(" ".join(units))
    cuts = cut(units, references, Cutting(unit=unit, aligner=aligner))
    assert len(cuts) == len(references) + 1
    assert cuts[0] == 0
    assert cuts[-1] == len(units)
    assert cuts == sorted(cuts)


@pytest.mark.parametrize("aligner", ALIGNERS)
@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_a_perfect_output_of_distinct_words_is_cut_perfectly(aligner, lengths):
    counter = itertools.count(1000)
    parts = [[f"w{next(counter)}" for _ in range(length)] for length in lengths]
    units = [word for part in parts for word in part]
    assert pieces(units, [" ".join(part) for part in parts], aligner=aligner) == parts


@pytest.mark.parametrize("aligner", ALIGNERS)
@given(talk=talks)
def test_renaming_words_by_new_letters_changes_nothing(aligner, talk):
    """Only equality and shared letters count, so any one-to-one change of letters is harmless."""
    units, references = talk
    renamed = str.maketrans("abcHushrx1", "bcaIvtigy2")
    changed = cut(
        [word.translate(renamed) for word in units],
        [reference.translate(renamed) for reference in references],
        Cutting(aligner),
    )
    assert cut(units, references, Cutting(aligner=aligner)) == changed


@pytest.mark.parametrize("aligner", ALIGNERS)
@given(talk=talks, cells=st.integers(1, 40))
def test_filling_in_small_blocks_changes_nothing(aligner, talk, cells):
    units, references = talk
    whole = cut(units, references, Cutting(aligner=aligner))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "BLOCK_CELLS", cells)
        patch.setattr(alignment, "STRIP_CELLS", cells)
        patch.setattr(edits, "BLOCK_BITS", cells)
        assert cut(units, references, Cutting(aligner=aligner)) == whole


@pytest.mark.parametrize("aligner", ALIGNERS)
@given(many=st.lists(talks, min_size=1, max_size=6), cells=st.integers(1, 300))
def test_many_talks_are_cut_as_each_alone(aligner, many, cells):
    alone = [cut(units, references, Cutting(aligner)) for units, references in many]
    assert cut_all(many, Cutting(aligner)) == alone
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "GROUP_CELLS", cells)
        patch.setattr(alignment, "BLOCK_CELLS", cells)
        patch.setattr(alignment, "SIDE_BY_SIDE", 3)
        assert cut_all(many, Cutting(aligner)) == alone


@given(sizes=st.lists(st.integers(0, 9), max_size=20), cells=st.integers(1, 99))
def test_no_more_is_aligned_side_by_side_than_there_is_room_for(sizes, cells):
    texts = [(["w"] * size, ["w"]) for size in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "GROUP_CELLS", cells)
        patch.setattr(alignment, "SIDE_BY_SIDE", 3)
        groups = [[sizes[index] for index in group] for group in alignment._groups(texts)]
    assert sorted(itertools.chain.from_iterable(groups)) == sorted(sizes)
    for group, following in itertools.zip_longest(groups, groups[1:]):
        assert 1 <= len(group) <= 3
        assert (len(group) - 1) * max(group) < cells  # a table for each, as large as the largest
        if following is not None:
            assert len(group) == 3 or len(group) * max(group) >= cells
            assert min(group) >= max(following)


def test_moses_splits_words_at_their_hyphens_as_omnisteval_asks_it_to():
    pytest.importorskip("sacremoses")
    assert _moses("en")("well-known") == ["well", "@-@", "known"]


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("1998,", ["1998,"]),
        ("A4,", ["A4,"]),
        ("4a,", ["4a", ","]),
        ("1998?", ["1998", "?"]),
        ("so,", ["so", ","]),
        (",", [","]),
    ],
)
def test_a_comma_stays_on_a_number_as_moses_has_it_at_the_end_of_a_line(word, parts):
    assert _moses("en")(word) == parts


@pytest.mark.parametrize("aligner", ALIGNERS)
def test_without_words_in_the_reference_the_first_sentence_has_it_all(aligner):
    assert cut(["a", "b"], ["", ""], Cutting(aligner=aligner)) == [0, 2, 2]
    assert cut([], ["a", "b"], Cutting(aligner=aligner)) == [0, 0, 0]


def test_no_reference_is_refused():
    with pytest.raises(DragomanError, match="no reference"):
        cut(["a"], [])
    with pytest.raises(DragomanError, match="no reference"):
        cut_all([(["a"], ["a"]), (["a"], [])], Cutting())
