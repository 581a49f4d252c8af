"""Outcomes of replays on disk: numbers in files of torch's own safe kind, the rest as JSON."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from compilescope.base.settings import env_rank
from compilescope.measure.diff.runs.trial import TrialOutcome, TrialValue
from compilescope.measure.tensors.structure import Lazy, Opaque, tensors_of

_MOST = 1 << 22
"""Numbers of one tensor that are kept: of a larger one, as many as these, evenly spread. Chosen: 16
MiB of float32; a mistake in a single place of a larger tensor may be missed."""
_NONE = types.SimpleNamespace(kind="-")
_PLAIN = (bool, int, float, complex, str, type(None))


class OutcomeKeeper:
    """Writes into one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self.kept_bytes = 0

    def keep(self, outcome: TrialOutcome) -> str:
        """The name of the file."""
        self._count += 1
        name = f"{self._count}.pt"
        leaves = {
            path: _encoded(value.kind, value.leaf)
            for path, value in outcome.values.items()
            # What follows a step of an optimizer follows from the gradients.
            if value.kind != "step"
        }
        part = self._folder / f"{name}.part"
        torch.save(leaves, part)
        self.kept_bytes += part.stat().st_size
        os.replace(part, self._folder / name)
        return name

    def write(self, record: dict[str, Any]) -> None:
        part = self._folder / "record.json.part"
        part.write_text(json.dumps(record), encoding="utf-8")
        os.replace(part, self._folder / "record.json")


@dataclass(frozen=True)
class KeptOutcome:
    """An outcome, read again."""

    outcome: TrialOutcome
    classes: dict[str, str]
    """By path: what a tensor or array was, with its whole shape."""


def read_kept(folder: Path, replay: dict[str, Any]) -> KeptOutcome:
    """What a child wrote is read, never run."""
    found = torch.load(folder / replay["file"], weights_only=True, map_location="cpu")
    values = {path: TrialValue(leaf["kind"], _decoded(leaf)) for path, leaf in found.items()}
    classes = {
        path: f"{leaf['class']} of {leaf['shape']}"
        for path, leaf in found.items()
        if "class" in leaf
    }
    return KeptOutcome(TrialOutcome(values=values, containers=dict(replay["containers"])), classes)


def _encoded(kind: str, leaf: Any) -> dict[str, Any]:
    if isinstance(leaf, enum.Enum):
        return {"kind": kind, "words": f"{type(leaf).__qualname__}.{leaf.name}"}
    if isinstance(leaf, torch.Tensor):
        plain, words = _plain(leaf)
        if plain is None:
            return {"kind": kind, "words": words}
        return {"kind": kind, "tensor": plain, "class": _class(leaf), "shape": list(leaf.shape)}
    if type(leaf) in _PLAIN:
        return {"kind": kind, "value": leaf}
    if type(leaf).__module__ == "numpy" and getattr(leaf, "dtype", _NONE).kind in "biufc":
        numbers = torch.from_numpy(leaf.copy() if leaf.ndim else leaf.reshape(1).copy())
        name = f"numpy {type(leaf).__name__}"
        return {"kind": kind, "tensor": numbers, "class": name, "shape": list(leaf.shape)}
    if isinstance(leaf, Lazy):
        return {"kind": kind, "lazy": leaf.kind}
    words = leaf.kind if isinstance(leaf, Opaque) else f"{type(leaf).__qualname__} {leaf!r}"[:300]
    return {"kind": kind, "words": words}


def _plain(tensor: torch.Tensor) -> tuple[torch.Tensor | None, str]:
    """Its numbers in a tensor that has nothing else to it."""
    words = f"{type(tensor).__qualname__} {tensor.dtype} {tuple(tensor.shape)}"
    try:
        flat = tensor.detach()
        if type(flat) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            return None, words
        if flat.is_quantized or flat.layout is not torch.strided or flat.is_nested:
            return flat.to_dense().cpu() if flat.layout is torch.sparse_coo else None, words
        flat = flat.resolve_conj().resolve_neg().cpu()
        if flat.numel() > _MOST:
            step = -(-flat.numel() // _MOST)
            return flat.reshape(-1)[::step].clone(), words
        return flat.clone(), words
    except (RuntimeError, NotImplementedError):
        return None, words


def _class(tensor: torch.Tensor) -> str:
    plain = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return "Tensor" if type(tensor) in plain else type(tensor).__qualname__


def _decoded(leaf: dict[str, Any]) -> Any:
    if "tensor" in leaf:
        return leaf["tensor"]
    if "value" in leaf:
        return leaf["value"]
    return Lazy(leaf["lazy"]) if "lazy" in leaf else Opaque(leaf["words"])


def size_of(value: Any) -> float:
    """The sum of all finite numbers in it, without their signs."""
    total = 0.0
    # The border to values of any kind: what cannot be summed is not followed.
    with contextlib.suppress(Exception), torch.no_grad():
        for tensor in tensors_of(value):
            if not tensor.is_complex():
                total += float(tensor.detach().double().abs().nan_to_num(0.0, 0.0, 0.0).sum())
    return total


def claim(folder: Path) -> bool:
    """Only one process of a program tells: the first of rank 0 that has something to tell."""
    if env_rank() != 0:
        return False
    try:
        os.mkdir(folder / "claimed")
    except OSError:
        return False
    return True
