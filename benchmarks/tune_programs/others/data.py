"""Writes random data for programs of others, in the folder they run in.

python data.py FUNCTION
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np

_RANDOM = np.random.default_rng(0)


def nothing() -> None:
    """The program makes its own."""


def characters() -> None:
    """What nanoGPT's `data/shakespeare_char/prepare.py` leaves."""
    folder = Path("data/shakespeare_char")
    letters = [chr(32 + number) for number in range(65)]
    known = {
        "vocab_size": 65,
        "stoi": {letter: number for number, letter in enumerate(letters)},
        "itos": dict(enumerate(letters)),
    }
    (folder / "meta.pkl").write_bytes(pickle.dumps(known))
    for name, count in (("train", 1_000_000), ("val", 100_000)):
        _tokens(65, count).tofile(folder / f"{name}.bin")


def stories() -> None:
    """What `tinystories.py pretokenize --vocab_size=512` of llama2.c leaves."""
    folder = Path("data/tok512")
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(2):
        _tokens(512, 2_000_000).tofile(folder / f"data{number:02}.bin")


def stories15m() -> None:
    """A checkpoint of gpt-fast's smallest model with random weights, and a tokenizer for it."""
    import sentencepiece
    import torch

    sys.path.insert(0, ".")
    from model import Transformer

    folder = Path("checkpoints/stories15M")
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    weights = Transformer.from_name("stories15M").state_dict()
    torch.save(weights, folder / "stories15M.pth")
    # A piece for each of the 32,000 numbers that the model may answer.
    pieces = [f"piece{number}" for number in range(31_966)]
    Path("words.txt").write_text("\n".join(f"A cat sat on {n} mats." for n in range(200)))
    sentencepiece.SentencePieceTrainer.train(
        input="words.txt",
        model_prefix=str(folder / "tokenizer"),
        vocab_size=32_000,
        hard_vocab_limit=False,
        user_defined_symbols=pieces,
        minloglevel=2,
    )


def _tokens(most: int, count: int) -> np.ndarray:
    return _RANDOM.integers(0, most, count, dtype=np.uint16)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
