"""Example programs of rules and fixes: real `.py` files, read when somebody asks, never imported.

Those of `where-for-if` lie in `examples/where_for_if/` beside its module: `bad.py` loses something,
`good.py` is the same program without the loss, `refused.py` is one that a fix must leave alone.
Further ones are `bad_2.py`, `good_2.py`. First lines such as `#: note: ...` are about the example;
all else is the program, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from compilescope.base.bundles import Bundled, bundled

_MARK = "#: "


class Example(msgspec.Struct, frozen=True):
    """A program that loses something, and the same program after what is to be done about it."""

    bad: str
    good: str = ""
    """Of a fix: what it makes of `bad`, byte for byte. Of a rule: after a remedy of kind `source`;
    it prints what `bad` prints. A rule whose remedies need a person's judgement has none."""
    changes: str = ""
    """Where the remedy gives something up, and the two print different things: what it is."""
    note: str = ""
    """Why it is here, where that is not plain."""


class RefusalExample(msgspec.Struct, frozen=True):
    """A program that a fix must leave alone, and a part of the reason that it gives."""

    program: str
    because: str


def example_folder(package: Path, name: str) -> Bundled:
    """Where the examples of a rule or fix of `package` lie."""
    return bundled(package / "examples") / name.replace("-", "_")


def read_examples(folder: Bundled) -> tuple[Example, ...]:
    found = []
    for number, bad in _numbered(folder, "bad"):
        program, about = _read(bad)
        good, about_good = _read(_path(folder, "good", number))
        found.append(Example(program, good, **about, **about_good))
    return tuple(found)


def read_refusals(folder: Bundled) -> tuple[RefusalExample, ...]:
    found = (_read(path) for _, path in _numbered(folder, "refused"))
    return tuple(RefusalExample(program, **about) for program, about in found)


def _numbered(folder: Bundled, role: str) -> Iterator[tuple[int, Bundled]]:
    number = 1
    while (path := _path(folder, role, number)).is_file():
        yield number, path
        number += 1


def _path(folder: Bundled, role: str, number: int) -> Bundled:
    return folder / (f"{role}.py" if number == 1 else f"{role}_{number}.py")


def _read(path: Bundled) -> tuple[str, dict[str, str]]:
    """The program, and what its first lines say about it; both empty where there is no file."""
    text = path.read_bytes().decode() if path.is_file() else ""
    about: dict[str, str] = {}
    while text.startswith(_MARK):
        line, _, text = text.removeprefix(_MARK).partition("\n")
        key, _, words = line.partition(": ")
        about[key] = words
    return text, about
