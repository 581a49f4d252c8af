"""What runs one island: compiled for each set of sizes and strides that it is called with."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule

from compilescope.backends.mini.dtypes import TO_TORCH
from compilescope.backends.mini.library import Function, Library
from compilescope.backends.mini.translation import MiniOutput, Translation, translate

_counting = threading.Lock()


@dataclass
class MiniCounts:
    """What an adapter has compiled so far."""

    islands: int = 0
    compiled: int = 0
    """Graphs given to the small compiler: one for each set of sizes and strides of an island."""
    respecialized: int = 0
    """Of them, those for sizes or strides that came after the first."""
    from_cache: int = 0
    interpreted: int = 0
    """Run by the interpreter, because no machine code could be made."""
    seconds: float = 0.0
    """Spent compiling."""

    def note(self, info: Mapping[str, Any], *, again: bool) -> None:
        with _counting:
            self.compiled += 1
            self.respecialized += again
            self.from_cache += bool(info.get("cached"))
            self.interpreted += bool(info.get("fallback"))
            self.seconds += float(info.get("compile_seconds") or 0.0)


class IslandFunction:
    """Called with the island's inputs; gives its outputs."""

    def __init__(
        self,
        module: GraphModule,
        library: Library,
        options: Mapping[str, str],
        counts: MiniCounts,
    ) -> None:
        self._module = module
        self._library = library
        self._options = dict(options)
        self._counts = counts
        self._made: dict[Any, CompiledIsland] = {}
        self._lock = threading.Lock()

    def prepare(self, inputs: Sequence[Any]) -> Function:
        """Compile for these, which may be without numbers. Raises Untranslatable, MiniError."""
        return self._for(_signature(inputs), inputs).function

    def __call__(self, *inputs: Any) -> tuple[torch.Tensor, ...]:
        signature = _signature(inputs)
        made = self._made.get(signature)
        if made is None:
            made = self._for(signature, inputs)
        return made.run(inputs)

    def _for(self, signature: Any, inputs: Sequence[Any]) -> CompiledIsland:
        with self._lock:
            made = self._made.get(signature)
            if made is None:
                translation = translate(self._module, inputs)
                function = self._library.compile(translation.text, self._options)
                self._counts.note(function.info, again=bool(self._made))
                made = self._made[signature] = CompiledIsland(translation, function)
            return made


class CompiledIsland:
    """An island for one set of sizes and strides."""

    def __init__(self, translation: Translation, function: Function) -> None:
        self.function = function
        self._tensors = translation.tensors
        self._outputs = translation.outputs
        self._empty = [
            functools.partial(torch.empty, output.shape, dtype=TO_TORCH[output.dtype])
            for output in translation.outputs
        ]
        self._turned = any(output.order is not None for output in translation.outputs)

    def run(self, inputs: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        given = [_plain(inputs[number]) for number in self._tensors]
        results = [empty() for empty in self._empty]
        self.function.run([t.data_ptr() for t in given], [r.data_ptr() for r in results])
        return tuple(map(_turned, results, self._outputs) if self._turned else results)


def _turned(result: torch.Tensor, output: MiniOutput) -> torch.Tensor:
    return result if output.order is None else result.permute(output.order)


def _plain(value: torch.Tensor) -> torch.Tensor:
    """Memory that holds the tensor's own numbers."""
    if not value.is_cpu:
        raise TypeError(f"an input is on {value.device}; the small compiler works on the CPU")
    return value.resolve_neg() if value.is_neg() else value


def _signature(inputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        [
            (value.shape, value.stride()) if isinstance(value, torch.Tensor) else value
            for value in inputs
        ]
    )
