"""A failing graph on disk: one JSON file, and a safetensors file with the numbers of its inputs.

The program writes it, other processes read it. Nothing in it is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from compilescope.base.errors import ToolError
from compilescope.record.written_graph import WrittenGraph

RECORD, VALUES = "record.json", "values.safetensors"
FAILED, STARTED = "failed", "started"
"""Files beside the records: the name of the one whose backend raised; of the one at work now."""
SKIPPED, UNCHECKED = "skipped.json", "unchecked.json"
"""Why graphs were left out; the backends whose graphs were compared with nothing."""


class FailingGraph(msgspec.Struct, frozen=True):
    """What a repro is made of."""

    graph: WrittenGraph
    setting: Setting
    shown: Shown
    torch: str
    """The version it was seen on."""
    file: str = ""
    line: int | None = None
    """The user's line, where one is known."""
    pid: int = 0
    compile_id: str | None = None
    """Of the compilation that handed the graph over."""
    suspects: tuple[tuple[str, ...], ...] = ()
    """Names of operations that may show it without the others; the best guess first."""


def write_record(folder: Path, record: FailingGraph, values: Mapping[str, Any]) -> None:
    """`values`: name of an input -> its tensor."""
    folder.mkdir(parents=True, exist_ok=True)
    if values:
        from safetensors.torch import save_file

        plain: dict[str, Any] = {}
        seen: set[int] = set()
        for name, value in values.items():
            own = value.detach().cpu().contiguous()
            # One storage under two names is refused: each gets its own.
            storage = own.untyped_storage().data_ptr()
            plain[name] = own.clone() if storage in seen else own
            seen.add(storage)
        save_file(plain, folder / VALUES)
    # Last: a record that is there is whole.
    draft = folder / (RECORD + ".part")
    draft.write_bytes(msgspec.json.encode(record))
    draft.replace(folder / RECORD)


def read_record(folder: Path) -> FailingGraph:
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=FailingGraph)
    except (OSError, msgspec.MsgspecError):
        raise ToolError(f"{folder} contains no readable graph.") from None


Kind = Literal["violation", "failure", "signal", "difference"]


class BackendSource(msgspec.Struct, frozen=True):
    """A backend as source."""

    expression: str
    """What is given to torch.compile: `'inductor'`, `my_backend`."""
    name: str = ""
    """For people."""
    imports: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Where Python finds what is imported."""
    definitions: tuple[str, ...] = ()


class Setting(msgspec.Struct, frozen=True):
    """How the graph is compiled and run."""

    backend: BackendSource
    options: tuple[str, ...] = ()
    """More arguments of torch.compile, as source."""
    contexts: tuple[str, ...] = ()
    """Context managers around the call."""
    settings: tuple[str, ...] = ()
    """Lines that set what the program had set in torch's configuration."""
    backward: bool = False
    """Gradients are computed too."""
    model: str = ""
    """Which the graph is of."""


class Shown(msgspec.Struct, frozen=True):
    """What is wrong, by which it is known again."""

    kind: Kind
    expected: Any
    """`violation`: the facts. `failure`: class, words, place. `signal`: its number.
    `difference`: what kind of."""
    title: str
    """One sentence."""
    lines: tuple[str, ...] = ()
    """More of it, for the script's docstring."""
    also: tuple[Any, ...] = ()
    """`violation`: facts that may show up beside the expected ones."""
