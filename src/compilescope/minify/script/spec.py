"""What a repro script compiles with and what it shows: no reduction changes either."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

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
