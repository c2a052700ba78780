"""A stand-in for ffmpeg: it tells of a film, decodes none, and notes what it is asked to write."""

import json
import os
import sys
import time

TOLD = """\
Input #0, matroska,webm, from 'film.mkv':
  Stream #0:0: Video: h264 (High), yuv444p, 160x120 [SAR 1:1 DAR 4:3], 25 fps
  Stream #0:1(eng): Audio: aac (LC), 48000 Hz, stereo, fltp (default)
  Stream #0:2(fra): Audio: aac (LC), 48000 Hz, stereo, fltp
At least one output file must be specified
"""


def main(args: list[str]) -> int:
    if args[-2] == "-i":
        source = args[-1].removeprefix("file:")
        sys.stderr.write(
            TOLD if source.endswith((".mkv", ".mp4")) else "  Stream #0:0: Audio: mp3\n"
        )
        return 1
    if how := os.environ.get("FAKE_FFMPEG"):
        if how == "wait":
            time.sleep(3600)
        sys.stderr.write("No space left on device\nConversion failed!\n")
        return 1
    with open(args[-1].removeprefix("file:"), "w", encoding="utf-8") as file:
        json.dump(args, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
