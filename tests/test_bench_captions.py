"""How the benchmark judges caption files."""

import pytest

from benchmarks.captions import named, report

CUE = "1\n00:00:00,000 --> 00:00:02,000\n{}\n\n"
GERMAN, ENGLISH = "Der Bericht wird morgen angenommen.", "The report will be adopted tomorrow."


def share(tmp_path, text, both):
    path = tmp_path / "talk.srt"
    path.write_text(CUE.format(text), encoding="utf-8")
    return report("talk", *named(f"both:{path}" if both else str(path)), None)


def test_of_two_languages_each_is_read_by_itself(tmp_path):
    """Together 71 characters in two seconds; one reads 36 of them at most."""
    text = f"{GERMAN}\n{ENGLISH}"
    assert share(tmp_path, text, both=True) == 1.0
    assert share(tmp_path, text, both=False) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        f"{GERMAN}\n{ENGLISH} And so.",  # 44 characters: too many for a line and for two seconds
        f"{GERMAN}\nThe report will be adopted tomorrow, yes!",  # fits a line; takes 2.05 s
        f"{GERMAN} Ja, ja, ja.\nYes.",
        f"{GERMAN}\n, the report.",
    ],
)
def test_each_language_has_to_keep_the_rules(tmp_path, text):
    assert share(tmp_path, text, both=True) == 0.0
