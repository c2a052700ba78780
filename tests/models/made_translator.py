"""Small text translators with random weights, written by CTranslate2's own specs, and SentencePiece
models of a few pieces: folders of the shape of OPUS-MT, NLLB-200 and M2M-100."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

WIDTH, HEADS, LAYERS = 32, 2, 2
# A piece's place says how likely it is. They are given, not learned: what SentencePiece's trainer
# makes of a few sentences changes from one release to the next.
PIECES = """
▁ t . e a o s m n i h d ü ▁gr ▁Meer ▁sea ▁the er us and as ▁b he ▁st ot ome r ▁ho om ▁r b es u nd f
H T A D E c l y ä B v k ee ▁s ▁h ▁a re te g M me
"""


def units(path: Path) -> list[str]:
    """Write a SentencePiece model of `PIECES`; its pieces, special ones left out."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    model = proto.ModelProto()
    model.trainer_spec.model_type = proto.TrainerSpec.UNIGRAM
    kinds = proto.ModelProto.SentencePiece
    for piece, kind in (("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)):
        model.pieces.add(piece=piece, score=0, type=kind)
    for place, piece in enumerate(PIECES.split()):
        model.pieces.add(piece=piece, score=-3 - place / 30)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return PIECES.split()


def opus(
    folder: Path, *, tags: Sequence[str] = (), source_eos: bool = False, seed: int = 0
) -> Path:
    """As the converter makes it of OPUS-MT; `tags` as in >>deu<< for several targets."""
    pieces = units(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    names = ["</s>", "<unk>", *pieces, *tags]
    return _write(folder, names, seed=seed, start="</s>", source_eos=source_eos)


def nllb(folder: Path, codes: Sequence[str] = ("eng_Latn", "deu_Latn", "zho_Hans")) -> Path:
    pieces = units(folder / "sentencepiece.bpe.model")
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces, *codes, "<mask>"]
    return _write(folder, names, seed=0, start="</s>")


def m2m(folder: Path, codes: Sequence[str] = ("en", "de", "fr")) -> Path:
    pieces = units(folder / "sentencepiece.bpe.model")
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces, *(f"__{code}__" for code in codes)]
    return _write(folder, [*names, "madeupword0"], seed=0, start="</s>")


def _write(
    folder: Path, names: list[str], *, seed: int, start: str, source_eos: bool = False
) -> Path:
    from ctranslate2.specs import TransformerSpec

    random = np.random.default_rng(seed)

    def normal(*shape: int, size: float = 1.0) -> np.ndarray:
        return (size * random.standard_normal(shape)).astype(np.float32)

    spec = TransformerSpec.from_config(LAYERS, HEADS, pre_norm=False)
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = False
    table = normal(len(names), WIDTH)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = table
    spec.decoder.projection.weight = normal(len(names), WIDTH)
    positions = normal(200, WIDTH, size=2.0)
    for part in (spec.encoder, spec.decoder):
        part.position_encodings.encodings = positions
        for layer in part.layer:
            _fill(layer, normal)
    for name, value in (("source", names), ("target", names)):
        getattr(spec, f"register_{name}_vocabulary")(value)
    spec.config.decoder_start_token = start
    spec.config.add_source_eos = source_eos
    spec.config.add_source_bos = False
    spec.validate()
    spec.optimize("int8")
    spec.save(str(folder))
    return folder


def _fill(layer, normal) -> None:
    attentions = [layer.self_attention, *([layer.attention] if hasattr(layer, "attention") else [])]
    for attention in attentions:
        own = len(attention.linear) == 2
        rows = [3 * WIDTH, WIDTH] if own else [WIDTH, 2 * WIDTH, WIDTH]
        for linear, size in zip(attention.linear, rows, strict=True):
            _linear(linear, size, WIDTH, normal)
        _norm(attention.layer_norm, normal)
    _linear(layer.ffn.linear_0, 2 * WIDTH, WIDTH, normal)
    _linear(layer.ffn.linear_1, WIDTH, 2 * WIDTH, normal)
    _norm(layer.ffn.layer_norm, normal)


def _linear(layer, rows: int, columns: int, normal) -> None:
    layer.weight, layer.bias = (
        normal(rows, columns, size=1.5 * columns**-0.5),
        normal(rows, size=0.1),
    )


def _norm(layer, normal) -> None:
    layer.gamma, layer.beta = 1 + normal(WIDTH, size=0.1), normal(WIDTH, size=0.1)
