"""WhisperLiveKit without its server: samples in, what it committed and when out.

Run by a Python that has WhisperLiveKit: `python whisperlivekit_worker.py MODEL LANGUAGE STEP_MS`.
The first line of output tells what runs. Then each line of input names a .npy file of 16 kHz
samples, and each line of output is a JSON list with, for every step, the audio heard (ms), the
processor time spent on it by all threads (ms) and the text that became final.
"""

import json
import logging
import sys
import time
from importlib.metadata import version

import numpy as np
from whisperlivekit.core import TranscriptionEngine, online_factory

RATE = 16000


def main() -> None:
    """Answer until the input ends."""
    logging.disable(logging.CRITICAL)
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    model, language, step_ms = sys.argv[1:]
    engine = TranscriptionEngine(
        backend_policy="localagreement",
        backend="faster-whisper",
        model_path=model,
        lan=language,
        direct_english_translation=True,
        vac=False,  # voice detection is the server's part: its cost is not counted
        warmup_file="",
    )
    about = {name: version(name) for name in ("whisperlivekit", "ctranslate2")}
    about["compute"] = engine.asr.model.model.compute_type
    print(json.dumps(about), file=answers, flush=True)
    for line in sys.stdin:
        steps = interpret(engine, np.load(line.strip()), int(float(step_ms) * RATE / 1000))
        print(json.dumps(steps), file=answers, flush=True)


def interpret(
    engine: TranscriptionEngine, samples: np.ndarray, step: int
) -> list[tuple[float, float, str]]:
    """One clip, a step at a time, as a live speaker's audio would come."""
    processor = online_factory(engine.args, engine.asr)
    steps = []
    for start in range(0, len(samples), step):
        begin = time.process_time()
        processor.insert_audio_chunk(samples[start : start + step])
        tokens, _ = processor.process_iter()
        heard = min(start + step, len(samples))
        if heard == len(samples):
            tokens = [*tokens, *processor.finish()[0]]
        spent = time.process_time() - begin
        text = engine.asr.sep.join(token.text for token in tokens)
        steps.append((heard * 1000 / RATE, spent * 1000, text))
    return steps


if __name__ == "__main__":
    main()
