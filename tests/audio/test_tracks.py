"""What ffmpeg tells of a file, and which track somebody means."""

import pytest

from dragoman.audio.tracks import Contents, Track, contents_of, number_of, read_contents
from dragoman.errors import DragomanError

FILM = """\
Input #0, matroska,webm, from 'film.mkv':
  Duration: 00:00:04.02, start: 0.000000, bitrate: 265 kb/s
  Stream #0:0: Video: h264 (High), yuv444p, 160x120 [SAR 1:1 DAR 4:3], 25 fps
    Metadata:
      title           : The picture
  Stream #0:1(ger): Audio: aac (LC), 48000 Hz, 5.1, fltp, start 0.500000 (default)
    Metadata:
      ENCODER         : Lavc63.1.102 aac
  Stream #0:2[0x3](und): Audio: aac (LC) (mp4a / 0x6134706D), 44100 Hz, stereo, fltp
    Metadata:
      title           : Commentary
  Stream #0:3(fra): Subtitle: subrip
At least one output file must be specified
"""
SONG = """\
  Stream #0:0: Audio: mp3, 44100 Hz, mono, fltp, 64 kb/s
  Stream #0:1: Video: png, rgb24(pc), 10x10, 90k tbr, 90k tbn (attached pic)
"""
TRACKS = (Track("ger", "5.1"), Track(None, "stereo", "Commentary"))


TITLED = """\
  Stream #0:0(eng): Audio: aac, 48000 Hz, stereo, fltp
      title           : As it was
  Stream #0:1(eng): Audio: aac, 48000 Hz, mono, fltp
  Stream #0:2(eng): Audio: aac, 48000 Hz, stereo, fltp
      title           : For the blind
"""


def test_a_title_is_that_of_the_track_before_it():
    titles = [track.title for track in read_contents(TITLED).tracks]
    assert titles == ["As it was", "", "For the blind"]


def test_what_a_file_holds():
    assert read_contents(FILM) == Contents(TRACKS, picture=True, subtitles=1)
    assert read_contents(SONG) == Contents((Track(None, "mono"),))  # its cover is no film
    assert read_contents("nothing of the kind") == Contents()


@pytest.mark.parametrize(
    ("wanted", "number"), [("1", 0), ("2", 1), ("de", 0), ("German", 0), ("deu", 0)]
)
def test_a_track_is_named_by_its_number_or_its_language(wanted, number):
    assert number_of(wanted, TRACKS, "film.mkv") == number


def test_of_two_in_a_language_the_first_is_meant():
    assert number_of("x-klingon", [Track("de"), Track("X-Klingon"), Track("x-klingon")], "") == 1


@pytest.mark.parametrize("wanted", ["0", "3", "fr", "tlh"])
def test_a_track_that_is_not_there_is_told_with_those_that_are(wanted):
    told = r"film.mkv has 2 audio tracks: 1 \(German, 5.1\), 2 \(stereo, Commentary\); "
    with pytest.raises(DragomanError, match=f"{told}there is no track {wanted}."):
        number_of(wanted, TRACKS, "film.mkv")


def test_without_ffmpeg_nobody_can_look(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DragomanError, match="ffmpeg is needed"):
        contents_of(tmp_path / "film.mkv")
