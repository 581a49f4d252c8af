"""Code that a page keeps compressed until a reader opens it.

A page of hundreds of graphs would be slow to open and large to mail if all code stood in it. So
the panes of a graph lie in a `<template>` as compressed text, many graphs to a template: the
browser parses no more than a long word, and a script unpacks one template when a graph in it is
opened, and colours it then. A line that several stages share is kept once.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
from markupsafe import Markup

from compilescope.base.texts import encode_json, visible
from compilescope.report.blocks import Pane, Panes
from compilescope.report.render.code_colors import WORDS
from compilescope.report.render.code_lines import folded

_FULL = 500_000
"""Characters of lines in a box, after which another is begun: some milliseconds to unpack. Chosen:
one that is opened must not be waited for."""
LARGEST = 1_700_000
"""Bytes of all boxes on one page. Chosen: with the rest of the page it stays within the 3 MB that
benchmarks/big_runs.py asks for."""

_GZIP = 31
"""As zlib calls the format that a browser unpacks."""


class _Stage(msgspec.Struct, frozen=True):
    """A pane in a box. Lines and kin are numbers: steps in the box's lines, and in `kins`."""

    title: str
    note: str
    lines: list[int]
    kin: list[int]
    kins: list[str]
    numbers: list[int]
    folds: list[tuple[int, int, str]]
    """Where it begins, how many lines it has, what stands there instead."""


class _Box:
    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.graphs: list[list[_Stage]] = []
        self.size = 0

    def put(self, panes: Panes) -> None:
        self.graphs.append([self._stage(pane) for pane in panes.panes])

    def packed(self) -> str:
        content = {"lines": list(self.lines), "graphs": self.graphs, "words": WORDS}
        packer = zlib.compressobj(4, zlib.DEFLATED, _GZIP)
        raw = packer.compress(encode_json(content)) + packer.flush()
        return base64.b64encode(raw).decode()

    def _stage(self, pane: Pane) -> _Stage:
        known, steps, kin, last = self.lines, [], [], -1
        kins: dict[tuple[int, ...], int] = {(): 0}
        same: tuple[int, ...] = ()
        at = 0
        for text, line in zip(_visible_texts(pane), pane.lines, strict=True):
            number = known.get(text)
            if number is None:
                number = known[text] = len(known)
                self.size += len(text)
            steps.append(number - last)
            last = number
            # All lines of a kernel have the same long tuple: it is hashed once.
            if line.kin is not same:
                same, at = line.kin, kins.setdefault(line.kin, len(kins))
            kin.append(at)
        numbered = [line.number for line in pane.lines]
        source = any(number is not None for number in numbered)
        numbers = [number or 0 for number in numbered] if source else []
        named = [" ".join(map(str, members)) for members in kins]
        return _Stage(
            visible(pane.title), visible(pane.note), steps, kin, named, numbers, _folds(pane)
        )


def _visible_texts(pane: Pane) -> list[str]:
    texts = [line.text for line in pane.lines]
    # Of most stages one look at all of it shows that nothing is hidden in any line.
    whole = "".join(texts)
    is_plain = whole.isascii() and whole.isprintable()
    if is_plain:
        return texts
    return [text if text.isascii() and text.isprintable() else visible(text) for text in texts]


def _folds(pane: Pane) -> list[tuple[int, int, str]]:
    if not any(line.fold for line in pane.lines):
        return []
    found, at = [], 0
    for label, lines in folded(pane.lines):
        if label:
            found.append((at, len(lines), visible(label)))
        at += len(lines)
    return found


class CompressedCode:
    """The boxes of one page."""

    def __init__(self, largest: int = LARGEST) -> None:
        self._largest = largest
        self._boxes: list[str] = []
        self._open = _Box()

    def put(self, panes: Panes) -> str:
        """Where it lies: the box and its number there. Empty where the shelf is full."""
        if sum(map(len, self._boxes)) > self._largest:
            return ""
        place = f"{len(self._boxes)} {len(self._open.graphs)}"
        self._open.put(panes)
        if self._open.size > _FULL:
            self._close()
        return place

    def html(self) -> Markup:
        """What the page must hold, after all that was put here."""
        self._close()
        return Markup("\n").join(
            Markup('<template class="box">{}</template>').format(box) for box in self._boxes
        )

    def _close(self) -> None:
        if self._open.graphs:
            self._boxes.append(self._open.packed())
            self._open = _Box()


_SHELF: ContextVar[CompressedCode | None] = ContextVar("shelf", default=None)


@contextmanager
def open_shelf() -> Iterator[None]:
    """While a page is drawn, its panes are put on a shelf of its own."""
    token = _SHELF.set(CompressedCode())
    try:
        yield
    finally:
        _SHELF.reset(token)


def packed_code() -> Markup:
    """All that lies on the shelf, for the end of the page."""
    shelf = _SHELF.get()
    return shelf.html() if shelf is not None else Markup("")


def panes_values(block: Panes) -> dict[str, Any]:
    """Where the code lies; None where it is to stand in the page itself."""
    shelf = _SHELF.get()
    if shelf is None or len(block.panes) < 2:
        return {"place": None}
    return {"place": shelf.put(block)}
