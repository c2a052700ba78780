"""Toy nets of COMET's kind, the same on every machine, and what COMET's own tool says of them.

`expected.json` was made by unbabel-comet 2.2.7 in an environment of its own, which has neither
Dragoman nor its versions of things:

    python -m venv comet && comet/bin/pip install torch==2.13.0 unbabel-comet==2.2.7
    comet/bin/python tests/golden/comet/toy.py
"""

import json
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

HERE = Path(__file__).parent
PIECES = HERE / "sentencepiece.bpe.model"
EXPECTED = HERE / "expected.json"
WIDTH, INNER, LAYERS, WORDS, POSITIONS = 128, 192, 2, 58, 40
# Every way that a net may weigh its layers and sum up a text.
NETS: dict[str, dict[str, Any]] = {
    "usual": {"layer_transformation": "sparsemax", "layer_norm": False},
    "patched": {
        "layer_transformation": "sparsemax",
        "layer_norm": False,
        "told": {"layer_transformation": "sparsemax_patch"},
    },
    "normed": {
        "layer_transformation": "softmax",
        "layer_norm": True,
        "final_activation": "Sigmoid",
    },
    "first token": {"pool": "cls", "layer_norm": True},
    "largest": {"pool": "max", "layer_norm": False},
    "one layer": {"layer": 1, "pool": "avg"},
}
TRIPLES = [
    ("Der Bericht ist sehr gut.", "The report is very good.", "The report is good."),
    ("Die Zeit ist um.", "Clean water", "Time is up."),
    ("Wir danken der Kommission.", "", "We thank the Commission for it."),
    ("Sauberes Wasser", "Clean  water!", "Clean water and good schools 7 € ß."),
    ("Die Zeit ist um. " * 12, "Time is up. " * 15, "Time is up. " * 3),
]


def make(folder: Path, name: str) -> Path:
    """A folder as COMET's tool fetches it, and what it needs of XLM-RoBERTa in the same."""
    settings = dict(NETS[name])
    told = settings.pop("told", {})
    usual = {
        "pool": "avg",
        "layer": "mix",
        "encoder_model": "XLM-RoBERTa",
        "pretrained_model": str(folder),
        "hidden_sizes": [24, 16],
        "activations": "Tanh",
        "final_activation": None,
        "dropout": 0.1,
    }
    hyper = usual | settings
    (folder / "checkpoints").mkdir(parents=True)
    weights = _weights(np.random.RandomState(7 + list(NETS).index(name)), hyper)
    stored = {
        "state_dict": weights,
        "hyper_parameters": hyper,
        "pytorch-lightning_version": "2.6.6",
    }
    torch.save(stored, folder / "checkpoints" / "model.ckpt")
    outside = hyper | {"class_identifier": "regression_metric"} | told
    (folder / "hparams.yaml").write_text(yaml.safe_dump(outside))
    (folder / "config.json").write_text(json.dumps(_config()))
    shutil.copy(PIECES, folder)
    return folder


def _weights(random: np.random.RandomState, hyper: dict[str, Any]) -> dict[str, torch.Tensor]:
    def draw(*shape: int, size: float = 1.0, mean: float = 0.0) -> torch.Tensor:
        return torch.tensor(mean + size * random.standard_normal(shape), dtype=torch.float32)

    made: dict[str, torch.Tensor] = {}

    def linear(name: str, rows: int, columns: int) -> None:
        made[f"{name}.weight"] = draw(rows, columns, size=2 * columns**-0.5)
        made[f"{name}.bias"] = draw(rows, size=0.3)

    def norm(name: str) -> None:
        made[f"{name}.weight"] = draw(WIDTH, size=0.2, mean=1.0)
        made[f"{name}.bias"] = draw(WIDTH, size=0.2)

    embeddings = "encoder.model.embeddings"
    made[f"{embeddings}.word_embeddings.weight"] = draw(WORDS, WIDTH)
    made[f"{embeddings}.position_embeddings.weight"] = draw(POSITIONS, WIDTH)
    made[f"{embeddings}.token_type_embeddings.weight"] = draw(1, WIDTH)
    norm(f"{embeddings}.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.model.encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{layer}.attention.{part}", WIDTH, WIDTH)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", INNER, WIDTH)
        linear(f"{layer}.output.dense", WIDTH, INNER)
        norm(f"{layer}.output.LayerNorm")
    if hyper["layer"] == "mix":
        for number in range(LAYERS + 1):
            made[f"layerwise_attention.scalar_parameters.{number}"] = draw(1)
        made["layerwise_attention.gamma"] = draw(1, mean=1.0, size=0.1)
    sizes = [6 * WIDTH, *hyper["hidden_sizes"], 1]
    for number, (columns, rows) in enumerate(pairwise(sizes)):
        linear(f"estimator.ff.{3 * number}", rows, columns)
    return made


def _config() -> dict[str, Any]:
    return {
        "model_type": "xlm-roberta",
        "vocab_size": WORDS,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": WIDTH // 64,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
    }


def ask_the_tool() -> None:
    """Write down what COMET's own tool says."""
    import tempfile

    from comet import load_from_checkpoint

    samples = [{"src": s, "mt": m, "ref": r} for s, m, r in TRIPLES]
    expected = {}
    for name in NETS:
        with tempfile.TemporaryDirectory() as folder:
            made = make(Path(folder) / "net", name)
            net = load_from_checkpoint(str(made / "checkpoints" / "model.ckpt"))
            said = net.predict(samples, batch_size=2, gpus=0, num_workers=0, progress_bar=False)
            expected[name] = said["scores"]
    EXPECTED.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    ask_the_tool()
    sys.stdout.write(EXPECTED.read_text())
