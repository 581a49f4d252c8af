"""How a report writes files, places in them, counts, amounts and lists of names.

Amounts are bytes and floating point operations. Unknown is never zero.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from compilescope.base.patterns import late
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.graphs.statistics import Amount
from compilescope.record.stack import cell_of, origin_of, place_of, shown_file

_PACKAGE = late(r"^.*[/\\](?:site|dist)-packages[/\\]")
_MOST_LETTERS = 24
"""Of a path in a table; a longer one is shortened to its file. Chosen: room for the other
columns."""
_MOST_OF_NAME = 40
"""Of that name, with its line. Chosen: half of a line; names of files are longer only when made by
a program."""
_MOST_NAMED = 16
"""Chosen: a line or two of names."""


def shown_path(file: str, root: str) -> str:
    """Relative to the program's folder, or to the installed package; a cell by its number."""
    if cell_of(file) is not None:
        return shown_file(file)
    if root and file.startswith(root.rstrip("/\\") + "/"):
        return file[len(root.rstrip("/\\")) + 1 :]
    if origin_of(file) in ("library", "torch"):
        return _PACKAGE.sub("", file)
    return file


def place(file: str, line: int, root: str) -> str:
    if not file:
        return "unknown place"
    return place_of(file if cell_of(file) is not None else shown_path(file, root), line)


def brief_place(file: str, line: int, root: str) -> str:
    """The same for a line that has little room: of a long path the file's name alone."""
    at = place(file, line, root)
    if len(at) <= _MOST_LETTERS:
        return at
    return without_middle(re.split(r"[/\\]", at)[-1], _MOST_OF_NAME)


def without_middle(text: str, most: int) -> str:
    """`transformer.h[…training`: both ends of a text that is longer."""
    if len(text) <= most:
        return text
    last = max(most - 1, 0) // 2
    return text[: max(most - 1, 0) - last] + "…" + text[len(text) - last :]


def told_apart(texts: Sequence[str], most: int) -> list[str]:
    """Texts of which the first letters are drawn, so many: of those that read alike then, what they
    begin with alike is shortened instead."""
    shown = [*texts]
    alike: dict[str, set[str]] = {}
    for text in texts:
        alike.setdefault(text[: most - 1], set()).add(text)
    for number, text in enumerate(texts):
        others = alike[text[: most - 1]]
        if len(others) > 1:
            shown[number] = _around(text, _common([*others]), most)
    return shown


def _common(texts: list[str]) -> int:
    """With as many letters they all begin."""
    first, last = min(texts), max(texts)
    pairs = enumerate(zip(first, last, strict=False))
    return next((n for n, (one, other) in pairs if one != other), len(first))


_BEFORE = 4
"""Letters that are kept before those in which texts differ. Chosen: `.h[1` is read more easily than
`1`."""


def _around(text: str, at: int, most: int) -> str:
    """A third for the beginning of a text; the rest for what is around this letter."""
    head = text[: most // 3]
    room = most - len(head) - 1
    begin = max(min(at - _BEFORE, len(text) - room), len(head))
    tail = text[begin:]
    return f"{head}…{tail if len(tail) <= room else tail[: room - 1] + '…'}"


def anchor_of(finding: Finding) -> str:
    """The item that is about a finding."""
    if finding.kind == "break" or not finding.because:
        return finding.fingerprint
    return item_anchor(finding.kind, finding.because)


def item_anchor(kind: str, because: Sequence[str]) -> str:
    """The item that is about these events; empty without any."""
    return f"{kind}-{because[0]}" if because else ""


def count(number: int, one: str, many: str = "") -> str:
    """`1 graph`, `2 graphs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def first_few(names: Iterable[str], most: int = _MOST_NAMED) -> str:
    """`a, b, c`; of very many the first, and how many more there are."""
    every = list(names)
    more = len(every) - most
    # One more takes no more room than to say so.
    return ", ".join(every) if more < 2 else f"{', '.join(every[:most])} and {more} more"


def first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


def repro_place(path: str, cwd: str) -> tuple[str, str]:
    """A script's path as the user would type it from where the program ran, and in which folder
    it is where that is not said by the path."""
    if not os.path.isabs(path):
        return path, " in the run's folder"
    inside = cwd and path.startswith(cwd.rstrip(os.sep) + os.sep)
    return (os.path.relpath(path, cwd) if inside else path), ""


_BYTES = ("B", "KB", "MB", "GB", "TB")
_FLOPS = ("FLOPs", "kFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def shown_bytes(amount: Amount) -> str:
    """`1.5 MB`, `at least 2.0 KB`, `unknown`; a kilobyte is 1024 bytes."""
    return _shown(amount, _BYTES, 1024)


def shown_flops(amount: Amount) -> str:
    return _shown(amount, _FLOPS, 1000)


def _shown(amount: Amount, units: tuple[str, ...], step: int) -> str:
    if amount.at_least and not amount.known:
        return "unknown"
    value, unit = float(amount.known), 0
    while value >= step and unit < len(units) - 1:
        value, unit = value / step, unit + 1
    number = f"{value:.0f}" if not unit or value >= 100 else f"{value:.1f}"
    return f"{'at least ' if amount.at_least else ''}{number} {units[unit]}"


def shown_number(number: float) -> str:
    """With a letter of the decimal system: `918k`, `2.1T`."""
    for letter, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= scale:
            value = number / scale
            return f"{value:.2g}{letter}" if value < 99 else f"{value:.0f}{letter}"
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


def shown_rate(number: float, unit: str) -> str:
    """`790 TFLOP/s`."""
    text = shown_number(number)
    return f"{text[:-1]} {text[-1]}{unit}" if text[-1].isalpha() else f"{text} {unit}"
