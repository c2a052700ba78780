"""German as the Dittli voice reads it."""

import json

import numpy as np
import pytest

from dragoman.voices import dittli, open_voice
from dragoman.voices.dittli import DittliVoice
from dragoman.voices.german import GermanReader
from dragoman.voices.german_text import number_in_words, spell_out
from dragoman.voices.german_words import as_it_sounds
from dragoman.voices.network import vits_length
from tests.voices.fakes import FakeNetwork
from tests.voices.weights import need

RULES = {
    "exceptions": {"und": ["ʊ", "n", "t"]},
    "rules": [
        ["sch", ["ʃ"]],
        ["chs", {"callback": "chs"}],
        ["ch", {"callback": "ch"}],
        ["st", {"callback": "st"}],
        ["sp", {"callback": "sp"}],
        ["r", {"callback": "r"}],
        ["s", {"callback": "s"}],
        ["v", {"callback": "v"}],
        *([letter, [letter]] for letter in "abcdefghiklmnoptuwxzäöü"),
    ],
    "prefixes": ["auf", "be"],
    "loanword_v_fragments": ["vase"],
    "abbreviations": [["\\bz\\.\\s?B\\.", "zum Beispiel"], ["\\bMio\\.", "Millionen"]],
    "back_vowels": "aou",
    "all_vowels": "aeiouäöüy",
}


@pytest.fixture
def reader():
    return GermanReader(RULES)


@pytest.mark.parametrize(
    ("word", "spelt"),
    [
        ("angesichts", "an-gesichts"),
        ("ungenutzte", "un-genutzte"),
        ("angeln", "angeln"),
        ("angelpunkt", "angelpunkt"),
        ("ungarn", "ungarn"),
        ("hingen", "hingen"),
        ("hingegen", "hin-gegen"),
        ("mitgliedstaat", "mitglied-schtaat"),
        ("todesstrafe", "todes-schtrafe"),
        ("aussprache", "aus-schprache"),
        ("eingestellt", "ein-ge-schtellt"),
        ("wirtschaftspolitik", "wirtschaftspolitik"),
        ("manifestation", "manifestation"),
        ("ostufer", "ostufer"),
        ("staat", "staat"),
        ("chancengleichheit", "schangsengleichheit"),
        ("scheffel", "scheffel"),
        ("chefs", "schefs"),
        ("designiert", "designiert"),
        ("jobs", "dschobs"),
        ("detailliert", "detajiert"),
        ("manager", "männedscher"),
        ("management", "männedschment"),
    ],
)
def test_parts_of_words_and_foreign_words_are_spelt_as_they_sound(word, spelt):
    assert as_it_sounds(word) == spelt


def test_where_parts_of_a_word_meet_their_letters_are_read_apart(reader):
    assert "".join(reader.read("Rechtsstaat")) == "ʁeçtsʃtaat"
    assert "".join(reader.read("Chance")) == "ʃangse"


@pytest.mark.parametrize(
    ("word", "sounds"),
    [
        ("und", "ʊnt"),
        ("ach", "ax"),
        ("ich", "iç"),
        ("chor", "koɐ"),
        ("dachs", "daks"),
        ("wächst", "wäkst"),
        ("achse", "axse"),
        ("stand", "ʃtand"),
        ("aufstand", "aufʃtand"),
        ("fast", "fast"),
        ("spät", "ʃpät"),
        ("bespielen", "beʃpielen"),
        ("rar", "ʁaɐ"),
        ("arm", "aʁm"),
        ("sonne", "zonne"),
        ("hase", "haze"),
        ("haus", "haus"),
        ("vater", "fateɐ"),
        ("vase", "vaze"),
    ],
)
def test_letters_sound_by_what_is_around_them(reader, word, sounds):
    assert "".join(reader.read(word)) == sounds


def test_punctuation_is_kept_and_letters_of_other_scripts_are_skipped(reader):
    assert reader.read("Und, und!") == ["ʊ", "n", "t", ",", "ʊ", "n", "t", "!"]
    assert reader.read("naже") == ["n", "a"]


@pytest.mark.parametrize(
    ("word", "sounds"),
    [("naïf", "naif"), ("Łódź", "lodz"), ("Škoda", "ʃkoda"), ("Ørsted", "öʁsted"),
     ("señor", "zenioɐ"), ("Ka\u0308fer", "käfeɐ")],
)  # fmt: skip
def test_the_letters_of_foreign_names_are_not_lost(word, sounds):
    reader = GermanReader(RULES | {"rules": [["j", ["i"]], *RULES["rules"]]})
    assert "".join(reader.read(word)) == sounds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("50 % der 20%", "fünfzig Prozent der zwanzig Prozent"),
        ("3,5 % mehr", "drei Komma fünf Prozent mehr"),
        ("100 € oder $5 oder € 1.250,50", "einhundert Euro oder fünf Dollar oder "
         "zwölfhundertfünfzig Komma fünf null Euro"),
        ("bei 20 °C und 120 km/h", "bei zwanzig Grad Celsius und einhundertzwanzig Kilometer pro "
         "Stunde"),
        ("100 m, 5 MW", "einhundert Meter, fünf Megawatt"),
        ("um 10:30 Uhr und 1:00 Uhr", "um zehn Uhr dreißig und ein Uhr"),
        ("nach § 5 & 6", "nach Paragraf fünf und sechs"),
        ("5-10 Tage, 1990–1995", "fünf bis zehn Tage, neunzehnhundertneunzig bis "
         "neunzehnhundertfünfundneunzig"),
        ("am 15. Mai 2023", "am fünfzehnten Mai zweitausenddreiundzwanzig"),
        ("Der 1. Januar, der 3. Punkt", "Der erste Januar, der dritte Punkt"),
        ("vom 7. bis zum 20. März", "vom siebten bis zum zwanzigsten März"),
        ("101. Juni", "einhunderterster Juni"),
        ("Es waren 15. Wir gingen.", "Es waren fünfzehn. Wir gingen."),
        ("Es waren 15.", "Es waren fünfzehn."),
        ("im Jahr 2023. Wir", "im Jahr zweitausenddreiundzwanzig. Wir"),
        ("am 05.10.2009, dem 99.99.1999", "am fünften Oktober zweitausendneun, dem neunundneunzig "
         "Punkt neunundneunzig.neunzehnhundertneunundneunzig"),
        ("500 000 und 1 500, 2008 500", "fünfhunderttausend und fünfzehnhundert, zweitausendacht "
         "fünfhundert"),
        ("3 Millionen €, EUR 5 Milliarden, 2 EUR", "drei Millionen Euro, fünf Milliarden Euro, "
         "zwei Euro"),
        ("-5 °C, +3 % (−2)", "minus fünf Grad Celsius, plus drei Prozent (minus zwei)"),
        ("1 Jahr, 1 Stunde, 1 Million, 1 %", "ein Jahr, eine Stunde, eine Million, ein Prozent"),
        ("in Artikel 1 Absatz 21 Satz 1.", "in Artikel eins Absatz einundzwanzig Satz eins."),
        ("CO₂, G20, H5N1, COVID-19", "ze o zwei, ge zwanzig, ha fünf enn eins, COVID-neunzehn"),
        ("die NATO und die OSZE", "die NATO und die o es zett e"),
        ("200 km² und 5 t", "zweihundert Quadratkilometer und fünf Tonnen"),
        ("und/oder 2.0", "und oder zwei Punkt null"),
        ("Art. 5 Abs. 2, Fragen dieser Art.", "Artikel fünf Absatz zwei, Fragen dieser Art."),
        ("(EU) B2B", "(e u) be zwei be"),
        ("die 1990er Jahre", "die neunzehnhundertneunziger Jahre"),
        ("um 20:05, ein 3:2, 50:50", "um zwanzig Uhr fünf, ein drei:zwei, fünfzig:fünfzig"),
        ("eine 20%ige Lösung", "eine zwanzigprozentige Lösung"),
        ("Plan B, die V-Leute, Karl V. und", "Plan be, die vau-Leute, Karl V. und"),
        ("der U.S. Präsident", "der u es Präsident"),
        ("z. T. und u.U., v. a.", "zum Teil und unter Umständen, vor allem"),
        ("z. B. 3 Mio., d.h. ca. 5 Mrd. usw.", "zum Beispiel drei Millionen, das heißt circa fünf "
         "Milliarden und so weiter"),
        ("Fr. Dr. Abt bzw. Hr. Prof. Ott, Nr. 5", "Frau Doktor Abt beziehungsweise Herr Professor "
         "Ott, Nummer fünf"),
        ("Siehe www.example.com/de. Ende", "Siehe we we we Punkt example Punkt com Schrägstrich "
         "de e. Ende"),
        ("an info@a-b.org!", "an info ät a Bindestrich b Punkt org!"),
        ("die EU-Kommission, bspw. die EFSA.", "die e u-Kommission, beispielsweise die EFSA."),
    ],
)  # fmt: skip
def test_numbers_and_signs_are_said_as_people_say_them(text, said):
    assert spell_out(text) == said
    assert spell_out(said) == said


def test_what_is_short_is_spelled_out(reader):
    assert reader.spell_out("Die EU, z. B. 3,05 Mio.") == (
        "Die e u, zum Beispiel drei Komma null fünf Millionen"
    )
    assert reader.spell_out("1.250.000 und 12.5") == (
        "eine Million zweihundertfünfzigtausend und zwölf Punkt fünf"
    )


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "null"),
        (1, "eins"),
        (12, "zwölf"),
        (16, "sechzehn"),
        (17, "siebzehn"),
        (19, "neunzehn"),
        (20, "zwanzig"),
        (21, "einundzwanzig"),
        (37, "siebenunddreißig"),
        (100, "einhundert"),
        (101, "einhunderteins"),
        (216, "zweihundertsechzehn"),
        (1000, "eintausend"),
        (1066, "eintausendsechsundsechzig"),
        (1848, "achtzehnhundertachtundvierzig"),
        (2024, "zweitausendvierundzwanzig"),
        (21_000, "einundzwanzigtausend"),
        (1_000_000, "eine Million"),
        (2_500_001, "zwei Millionen fünfhunderttausendeins"),
        (3 * 10**9, "drei Milliarden"),
        (2 * 10**12, "zwei Billionen"),
    ],
)
def test_numbers_as_they_are_said(number, words):
    assert number_in_words(number) == words


def test_no_two_numbers_sound_alike():
    assert len({number_in_words(number) for number in range(20_000)}) == 20_000


def test_the_network_is_given_symbols_between_blanks(tmp_path, monkeypatch):
    about = {"symbols": ["_", "ʊ", "n", "t", "."], "tone_offset": 14, "language_id": 7}
    (tmp_path / "metadata.json").write_text(json.dumps(about))
    (tmp_path / "g2p_de_rules.json").write_text(json.dumps(RULES))
    network = FakeNetwork(lambda inputs: 44100)
    monkeypatch.setattr(dittli, "load_network", lambda path: network)
    assert len(DittliVoice(tmp_path).speak("Und.", 1.25)) > 0
    (inputs,) = network.asked
    assert inputs["x"].tolist() == [[0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 0, 0]]
    assert inputs["tone"].tolist() == [[0, 14] * 6 + [0]]
    assert inputs["language"].tolist() == [[0, 7] * 6 + [0]]
    assert inputs["x_lengths"].tolist() == [13]
    assert inputs["length_scale"] == pytest.approx([vits_length(1.25)])


def test_a_long_text_is_spoken_in_pieces(tmp_path, monkeypatch):
    """All at once, three minutes of it would take 10 GB."""
    about = {"symbols": ["_", "ʊ", "n", "t", "."], "tone_offset": 14, "language_id": 7}
    (tmp_path / "metadata.json").write_text(json.dumps(about))
    (tmp_path / "g2p_de_rules.json").write_text(json.dumps(RULES))
    network = FakeNetwork(lambda inputs: 44100)
    monkeypatch.setattr(dittli, "load_network", lambda path: network)
    sentences = 500
    assert len(DittliVoice(tmp_path).speak("Und und und. " * sentences)) > 0
    heard = [symbol for inputs in network.asked for symbol in inputs["x"][0].tolist() if symbol]
    assert heard == [1, 2, 3, 1, 2, 3, 1, 2, 3, 4] * sentences
    assert max(inputs["x"].shape[1] for inputs in network.asked) < 4 * dittli.LONGEST


@pytest.mark.weights
def test_the_real_network_speaks():
    need("dittli-de")
    voice = open_voice("dittli-de", "de")
    normal, fast = (voice.speak("Guten Morgen zusammen.", speed) for speed in (1.0, 1.4))
    assert 1.0 < len(normal) / voice.rate < 3.0
    assert np.array_equal(
        voice.speak("Guten Morgen zusammen."), normal
    )  # nothing is left to chance
    assert len(normal) / len(fast) == pytest.approx(1.4, abs=0.15)
    assert np.abs(normal).max() <= 0.951
