"""The program that is to be minified: its text, its arguments, and the data files that it names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from compilescope.errors import ToolError
from compilescope.minify.source.candidate import parse
from compilescope.minify.source.messages import Original
from compilescope.minify.source.nodes import is_docstring, walk
from compilescope.minify.source.one_file import OneFileProgram, flatten
from compilescope.minify.source.program_sandbox import ProgramFiles
from compilescope.model.plain_files import read_given

_LARGEST_FILES = 64 << 20
"""Bytes of all data files that travel with a program. Chosen: each candidate may need them at hand;
weights do not belong in a repro."""


@dataclass(frozen=True)
class SourceProgram:
    """A program as its user runs it."""

    original: Original
    text: str
    name: str
    """What to call it."""
    package: str = ""
    """The package that its relative imports begin from."""

    def in_one_file(self) -> OneFileProgram:
        """Its own modules written into it, and its arguments."""
        try:
            flat = flatten(self.text, (self.original.root,), self.package)
        except RecursionError:
            flat = OneFileProgram(self.text)
        text = with_arguments(flat.text, self.original.words[1:])
        return OneFileProgram(text, flat.inlined, flat.left)

    def as_it_is(self) -> OneFileProgram:
        return OneFileProgram(with_arguments(self.text, self.original.words[1:]))

    def surroundings(self) -> ProgramFiles:
        return ProgramFiles((self.original.root,), named_files(self.text, self.original.words[1:]))


def read_program(kind: str, words: tuple[str, ...]) -> SourceProgram:
    """`kind` and `words` as the command line has them."""
    if kind == "code":
        program = SourceProgram(Original("code", words, os.getcwd()), words[0], "<string>")
    elif kind == "module":
        program = _module(words)
    elif kind == "script":
        path = Path(words[0])
        path = path / "__main__.py" if path.is_dir() else path
        text = _text_of(path)
        root = str(path.resolve().parent)
        program = SourceProgram(Original("script", words, root), text, path.name)
    else:
        raise ToolError("minify takes a script, -m MODULE or -c CODE.")
    parse(program.text, program.name)
    return program


def _module(words: tuple[str, ...]) -> SourceProgram:
    name = words[0]
    base = Path(os.getcwd(), *name.split("."))
    package = name.rpartition(".")[0]
    path = base.with_name(f"{base.name}.py")
    if base.is_dir():
        path, package = base / "__main__.py", name
    if not path.is_file():
        raise ToolError(
            f"There is no module {name} in this folder.",
            hint="minify edits source, so it takes your own modules, not installed ones.",
        )
    original = Original("module", words, os.getcwd())
    return SourceProgram(original, _text_of(path), path.name, package)


def _text_of(path: Path) -> str:
    try:
        return read_given(path).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not UTF-8 text.") from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}.") from None


def with_arguments(text: str, words: tuple[str, ...]) -> str:
    """The program with its arguments written into it."""
    if not words:
        return text
    tree = cst.parse_module(text)
    body = list(tree.body)
    place = 0
    while place < len(body) and (is_docstring(body[place]) or _is_future(body[place])):
        place += 1
    lines = cst.parse_module(f"import sys\nsys.argv[1:] = {list(words)!r}\n").body
    return tree.with_changes(body=[*body[:place], *lines, *body[place:]]).code


def _is_future(line: cst.CSTNode) -> bool:
    first = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    module = first.module if isinstance(first, cst.ImportFrom) else None
    return isinstance(module, cst.Name) and module.value == "__future__"


def named_files(text: str, words: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Files of the working folder that a string of the program, or an argument, names."""
    names = set(words)
    for node in walk(cst.parse_module(text)):
        if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
            names.add(node.evaluated_value)
    found: list[tuple[str, str]] = []
    total = 0
    for name in sorted(names):
        path = Path(name)
        # What is named by its whole path is found there; "." and ".." are no names of files.
        if not name or len(name) > 255 or "\0" in name or path.is_absolute() or ".." in path.parts:
            continue
        if path.parts and path.exists():
            total += _bytes_of(path)
            if total <= _LARGEST_FILES:
                found.append((name, str(path.absolute())))
    return tuple(found)


def _bytes_of(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for folder, _, files in os.walk(path):
        total += sum(
            os.path.getsize(os.path.join(folder, f)) for f in files if _readable(folder, f)
        )
        if total > _LARGEST_FILES:
            break
    return total


def _readable(folder: str, name: str) -> bool:
    return os.path.isfile(os.path.join(folder, name))
