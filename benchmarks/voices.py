"""Every voice that is ready, heard by Whisper base: what it understands, what the speech costs.

DRAGOMAN_BENCH_EARS names another model that hears them, here, in `dubbing` and in `heard`.

WER is over eight sentences a language, without case, punctuation and accents of spelling that
cannot be heard; a robotic voice is hard for so small a recogniser, so compare within a language.
`cost` is processor seconds per second of speech, loading left out; `faster` is how much shorter
the same text is at a speed of 1.4; `level` the span of the loudness over the sentences.
"""

import os
import re
import time
import unicodedata
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.level import loudness
from dragoman.audio.resample import resample
from dragoman.interpreter import Interpreter
from dragoman.models import Model
from dragoman.policies import Offline
from dragoman.setup import Setup, System
from dragoman.voices import VOICES, Voice, espeak, open_voice

# No small numbers: a recogniser is free to write them as digits.
SENTENCES = {
    "en": """
Good morning, everybody, and welcome to the meeting.
We have to decide today whether the new bridge will be built.
The last train to London leaves from the other platform.
Could you tell me how far it is to the next village?
She bought some apples, a few lemons and a loaf of bread.
Science is a way of thinking much more than it is a body of knowledge.
The weather will be cold and windy in the north of the country.
Nobody knows why the old library was closed for so long.""",
    "de": """
Guten Morgen, meine Damen und Herren, willkommen zur Sitzung.
Wir müssen heute entscheiden, ob die neue Brücke gebaut wird.
Der letzte Zug nach Berlin fährt vom anderen Bahnsteig ab.
Können Sie mir sagen, wie weit es bis zum nächsten Dorf ist?
Sie kaufte Äpfel, ein paar Zitronen und frisches Brot.
Die Forschung hat in den letzten Jahren große Fortschritte gemacht.
Im Norden des Landes wird das Wetter kalt und windig.
Niemand weiß, warum die alte Bibliothek so lange geschlossen war.""",
    "es": """
Buenos días a todos y bienvenidos a la reunión.
Hoy tenemos que decidir si se construye el nuevo puente.
El último tren a Madrid sale del otro andén.
¿Puede decirme a qué distancia está el próximo pueblo?
Ella compró manzanas, algunos limones y pan fresco.
La ciencia ha hecho grandes progresos en los últimos años.
En el norte del país el tiempo será frío y ventoso.
Nadie sabe por qué la vieja biblioteca estuvo cerrada tanto tiempo.""",
    "fr": """
Bonjour à tous et bienvenue à la réunion.
Nous devons décider aujourd'hui si le nouveau pont sera construit.
Le dernier train pour Paris part de l'autre quai.
Pouvez-vous me dire à quelle distance se trouve le prochain village ?
Elle a acheté des pommes, quelques citrons et du pain frais.
La science a fait de grands progrès ces dernières années.
Dans le nord du pays, le temps sera froid et venteux.
Personne ne sait pourquoi la vieille bibliothèque est restée fermée si longtemps.""",
    "it": """
Buongiorno a tutti e benvenuti alla riunione.
Oggi dobbiamo decidere se il nuovo ponte sarà costruito.
L'ultimo treno per Roma parte dall'altro binario.
Può dirmi quanto dista il prossimo villaggio?
Lei ha comprato delle mele, qualche limone e del pane fresco.
La scienza ha fatto grandi progressi negli ultimi anni.
Nel nord del paese il tempo sarà freddo e ventoso.
Nessuno sa perché la vecchia biblioteca è rimasta chiusa così a lungo.""",
    "pt": """
Bom dia a todos e bem-vindos à reunião.
Hoje temos que decidir se a nova ponte será construída.
O último trem para São Paulo sai da outra plataforma.
Pode me dizer a que distância fica a próxima aldeia?
Ela comprou maçãs, alguns limões e pão fresco.
A ciência fez grandes progressos nos últimos anos.
No norte do país o tempo vai ficar frio e ventoso.
Ninguém sabe por que a velha biblioteca ficou fechada tanto tempo.""",
}


def run() -> dict[str, float]:
    """Measure every local voice in every language that there are sentences for."""
    recogniser = ears()
    rates = {}
    print(f"{'voice':24}{'WER':>8}{'cost':>8}{'faster':>8}{'level':>10}{'peak':>7}")
    for language, text in SENTENCES.items():
        for name, offer in VOICES.items():
            able = offer.local and language in offer.languages()
            if able and offer.missing(language) is None:
                voice = open_voice(name, language)
                label = f"{name} {language}"
                rates[label] = measure(label, voice, text.strip().splitlines(), recogniser)
    return rates


def measure(label: str, voice: Voice, sentences: list[str], recogniser: Model) -> float:
    """Print one row; the word error rate."""
    voice.speak(sentences[0])  # load
    begun = cpu_seconds()
    sounds = [voice.speak(sentence) for sentence in sentences]
    cost = cpu_seconds() - begun
    seconds = sum(map(len, sounds)) / voice.rate
    some = slice(0, 3)
    fast = sum(len(voice.speak(sentence, 1.4)) for sentence in sentences[some])
    faster = sum(map(len, sounds[some])) / fast
    levels = [20 * np.log10(loudness(sound, voice.rate)) for sound in sounds]
    errors = words = 0
    for sentence, sound in zip(sentences, sounds, strict=True):
        wanted, heard = (
            normal(sentence),
            normal(recognise(sound, voice.rate, voice.languages[0], recogniser)),
        )
        errors += Levenshtein.distance(wanted, heard)
        words += len(wanted)
    span = f"{min(levels):.1f}…{max(levels):.1f}"
    peak = max(float(np.abs(sound).max()) for sound in sounds)
    print(
        f"{label:24}{100 * errors / words:7.1f}%{cost / seconds:8.3f}{faster:8.2f}"
        f"{span:>13}{peak:7.2f}",
        flush=True,
    )
    return errors / words


def ears() -> Model:
    """What hears voices."""
    return System(Setup(os.environ.get("DRAGOMAN_BENCH_EARS", "whisper-base"))).model


def recognise(sound, rate: int, language: str, model: Model) -> str:
    """What a model hears in a sound."""
    interpreter = Interpreter(model, Offline(), source=language, target=language)
    # Sound that ends with the last word makes Whisper say the sentence twice now and then.
    quiet = np.zeros(3 * RATE, np.float32)
    heard = np.concatenate([resample(sound, rate), quiet])
    return "".join(interpreter.hear(Chunk(heard, last=True)).said)


def normal(text: str) -> list[str]:
    """Words without case, punctuation and accents."""
    plain = unicodedata.normalize("NFD", text.lower().replace("ß", "ss"))
    return re.sub(r"[^\w\s]", " ", re.sub(r"[\u0300-\u036f]", "", plain)).split()


def cpu_seconds() -> float:
    """Of this process and, on Linux, of eSpeak NG's worker."""
    seconds = time.process_time()
    process = espeak.worker().process
    if process is not None and (status := Path(f"/proc/{process.pid}/stat")).exists():
        ticks = status.read_text().rpartition(")")[2].split()[11:13]  # utime and stime
        seconds += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return seconds
