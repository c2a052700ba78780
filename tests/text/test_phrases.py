"""What a break costs, in the order in which breaks are preferred."""

import pytest

from dragoman.text.phrases import CLAUSE, INSIDE, JOINED, PHRASE, SENTENCE, WORD, break_cost


def test_better_breaks_cost_less():
    costs = [SENTENCE, CLAUSE, JOINED, PHRASE, WORD, INSIDE]
    assert costs == sorted(set(costs))


@pytest.mark.parametrize(
    ("before", "after", "cost"),
    [
        ("done.", "Then", SENTENCE),
        ("done?”", "Then", SENTENCE),
        ("终了。", "然后", SENTENCE),
        ("„Ja,“", "sagte", CLAUSE),
        ("however,", "the", CLAUSE),
        ("(however;)", "the", CLAUSE),
        ("同意，", "但", CLAUSE),
        ("president", "and", JOINED),
        ("Präsident", "und", JOINED),
        ("president", "“and", JOINED),
        ("president", "of", PHRASE),
        ("gewartet", "auf", PHRASE),
        ("お客様は", "東京", PHRASE),
        ("東京", "都", WORD),
        ("red", "house", WORD),
        ("the", "house", INSIDE),
        ("The", "house", INSIDE),
        ("of", "council", INSIDE),
        ("ihrer", "Häuser", INSIDE),
        ("einige", "Zeit", INSIDE),
        ("nuestros", "países", INSIDE),
        ("quelques", "jours", INSIDE),
        ("Herr", "Kommissar", INSIDE),
        ("Mr", "President", INSIDE),
        ("dem", "Haus", INSIDE),
        ("and", "members", INSIDE),
        ("20", "houses", INSIDE),
        ("15%", "der", PHRASE),
        ("Dr.", "Smith", INSIDE),
        ("z.", "B.", INSIDE),
        ("Mio.", "Euro", INSIDE),
        ("Nr.", "5", INSIDE),
        ("§", "5", INSIDE),
        ("€", "5", INSIDE),
        ("usw.", "und", JOINED),
        ("20", "30", WORD),
        ("house", "20", WORD),
        ("house", "", WORD),
    ],
)
def test_breaks(before, after, cost):
    assert break_cost(before, after) == cost


def test_an_ordinal_and_its_noun_belong_together():
    assert break_cost("8.", "September", "de") == INSIDE
    assert break_cost("8.", "September", "en") == SENTENCE
