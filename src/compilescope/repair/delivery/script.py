"""The script of `--script`: the program with its fixes, third-party code included.

The text of the main file is the script's own; changes of other modules are put into them when they
are imported, by a small class that the script carries. No file but the script is written.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compilescope.model.fingerprint import relative_file
from compilescope.model.stack import origin_of
from compilescope.repair.delivery import runtime
from compilescope.repair.delivery.pieces import FunctionPiece, digest_of, lines_of, pieces_of
from compilescope.texts import one_line

MARK = "# Made by `compilescope fix --script`"
LOG_MARK = "# Made by `compilescope logs --script`"
_MADE_FROM = re.compile(r"^# Made by `compilescope (?:fix|logs) --script` from (.+?): ")
_DIGEST = "# Digest of the lines below: "
_CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+")
_COPIED = "class _Fixes:"
_RUNTIME = "# Applies changes to other modules. The same in every such script.\n\n"
_CHANGES = "# Changes to other modules.\n"
_PROGRAM = "# The program.\n"
_BETWEEN = "\n\n\n"


@dataclass(frozen=True)
class ScriptRecipe:
    """What a script is made of."""

    main: str
    """The path of the main file; empty for `-c`."""
    text: str
    """The new text of the main file, or the code of `-c`."""
    files: Mapping[str, str]
    """New texts of other files."""
    originals: Mapping[str, str]
    output: str
    """Where the script will stand."""
    environment: Mapping[str, str]
    command: str = ""
    """How to run it."""
    fixes: tuple[str, ...] = ()
    """What was changed and verified, a line each, for its readers."""
    unverified: tuple[str, ...] = ()
    """What was changed and could not be verified, a line each."""
    left: tuple[str, ...] = ()
    """What was not changed, a line each."""
    mark: str = MARK
    where: str = ""
    """Where the fixes were verified, if that is not where the program runs."""
    why_unverified: str = ""
    """Why none could be."""
    package: str = ""
    """What `from . import x` in it is relative to, where it does not stand in its package."""
    folder: str = ""
    """A folder to import from first, where the script does not stand in it."""


@dataclass(frozen=True)
class FixedScript:
    """The text, and what it could not take along."""

    text: str
    refused: tuple[tuple[str, str], ...] = ()
    """(file, why)."""


def make_script(recipe: ScriptRecipe) -> FixedScript:
    changes, refused = _changes(recipe)
    setting = [*_settings(recipe), *changes]
    lines = lines_of(recipe.text.removeprefix("\ufeff"))
    shebang = lines[:1] if lines[0].startswith("#!") else []
    # The script is UTF-8, whatever its original was.
    rest = [
        line
        for number, line in enumerate(lines)
        if not (number < len(shebang) or (number < 2 and _CODING.match(line)))
    ]
    body = _with_block(rest, setting) if setting else rest
    digest = digest_of(lines_of("\n".join(body)))
    head = [*shebang, *_head(recipe, refused), f"{_DIGEST}{digest}"]
    return FixedScript("\n".join([*head, *body]), tuple(refused))


def is_ours(path: Path) -> bool:
    """Was the file made by us?"""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            marks = (MARK, LOG_MARK)
            return any(stream.readline().startswith(marks) for _ in range(2))
    except OSError:
        return False


def is_untouched(path: Path) -> bool:
    """Is it as we made it? Then it may be written over; what somebody added is theirs."""
    return bool(_untouched(path))


def _untouched(path: Path) -> list[str]:
    """The lines of a script of ours; none where somebody edited it."""
    if path.is_dir() or not is_ours(path):
        return []
    try:
        lines = lines_of(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        return []
    number = next((n for n, line in enumerate(lines) if line.startswith(_DIGEST)), None)
    if number is None:
        return []
    said = lines[number].removeprefix(_DIGEST).strip()
    return lines if digest_of(lines[number + 1 :]) == said else []


def original_of(path: Path) -> Path | None:
    """The program that one of our scripts was made from, as long as nobody edited the script."""
    lines = _untouched(path)
    made = next(filter(None, map(_MADE_FROM.match, lines[:2])), None)
    if made is None:
        return None
    original = path.parent / made[1]
    return original if original.is_file() else None


def _head(recipe: ScriptRecipe, refused: list[tuple[str, str]]) -> list[str]:
    name = "a -c command"
    if recipe.main:
        folder = os.path.dirname(os.path.abspath(recipe.output))
        name = os.path.relpath(recipe.main, folder).replace(os.sep, "/")
    lines = [f"{recipe.mark} from {one_line(name)}: the same program with its fixes."]
    if recipe.command:
        lines.append(f"# Run it with: {one_line(recipe.command)}")
    verified = f"Fixes, verified {recipe.where}:" if recipe.where else "Fixes:"
    why = one_line(recipe.why_unverified)
    unverified = f"Unverified fixes, because {why}:" if why else "Unverified fixes:"
    dropped = [f"{_named(file, recipe)}: {why}" for file, why in refused]
    for title, items in (
        (verified, recipe.fixes),
        (unverified, recipe.unverified),
        ("Not included:", dropped),
        ("To do by hand:", recipe.left),
    ):
        if items:
            lines += [f"# {one_line(title)}", *(f"#   {one_line(item)}" for item in items)]
    return lines


def _settings(recipe: ScriptRecipe) -> list[str]:
    lines: list[str] = []
    if recipe.environment:
        lines.append("from os import environ as _environ")
    for name, value in recipe.environment.items():
        lines.append(f"_environ[{_text(name)}] = {_text(value)}")
    if recipe.folder:
        lines += ["import sys as _sys", f"_sys.path.insert(0, {_text(recipe.folder)})"]
    if recipe.package:
        lines.append(f"__package__ = {_text(recipe.package)}")
    return lines


def _changes(recipe: ScriptRecipe) -> tuple[list[str], list[tuple[str, str]]]:
    calls: list[str] = []
    refused: list[tuple[str, str]] = []
    for file in sorted(recipe.files):
        old, new = recipe.originals[file], recipe.files[file]
        pieces = pieces_of(old, new)
        if pieces.problems and origin_of(file) != "user":
            refused.append((file, "; ".join(pieces.problems)))
            continue
        calls += ["", f"_fixes.file({_text(_named(file, recipe))})"]
        if pieces.problems:
            made_for = digest_of(lines_of(old.removeprefix("\ufeff")))
            text = "\n".join(lines_of(new.removeprefix("\ufeff")))
            calls.append(f"_fixes.module(made_for={_text(made_for)}, source={_quoted(text)})")
            continue
        if pieces.added:
            calls.append(f"_fixes.statements(source={_quoted(_BETWEEN.join(pieces.added))})")
        calls += [_call(piece) for piece in pieces.functions]
    if not calls:
        return [], refused
    start = ["", _RUNTIME, *_runtime(), "", "", _CHANGES, "_fixes = _Fixes(__file__)"]
    return [*start, *calls, "", "_fixes.install()", "", _PROGRAM], refused


def _call(piece: FunctionPiece) -> str:
    verb = "function" if piece.means == "code" else "function_anew"
    name, made_for = _text(piece.name), _text(piece.made_for)
    return f"_fixes.{verb}({name}, made_for={made_for}, source={_quoted(piece.source)})"


def _runtime() -> list[str]:
    lines = lines_of(Path(runtime.__file__).read_text(encoding="utf-8"))
    return lines_of("\n".join(lines[lines.index(_COPIED) :]).rstrip())


def _text(word: str) -> str:
    return f'"{word}"' if word.isprintable() and not set(word) & {'"', "\\"} else repr(word)


def _quoted(text: str) -> str:
    """A literal that shows the text as it is, line by line, from the literal's second line on."""
    text = f"\n{text}\n"
    for quotes in ("'''", '"""'):
        if quotes not in text:
            return f"r{quotes}{text}{quotes}"
    escaped = text.replace("\\", "\\\\").replace("'''", r"\'\'\'")
    return f"'''{escaped}'''"


def _with_block(lines: list[str], block: list[str]) -> list[str]:
    """The block stands after the docstring and the `from __future__` imports, before all else."""
    body = ast.parse("\n".join(lines)).body
    leading = list(itertools.takewhile(_comes_first, body))
    rest = body[len(leading) :]
    last = leading[-1] if leading else None
    if last is None or last.end_lineno is None:
        return [*block, *lines]
    cut = last.end_lineno
    head, tail = lines[:cut], lines[cut:]
    if rest and rest[0].lineno == cut:
        # `from __future__ import annotations; import torch`
        data = lines[cut - 1].encode()
        head[-1] = data[: last.end_col_offset].decode()
        tail = [data[rest[0].col_offset :].decode(), *tail]
    return [*head, *block, *tail]


def _comes_first(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _named(file: str, recipe: ScriptRecipe) -> str:
    """As the script finds it: `./x.py` beside it, or named from where packages are."""
    if origin_of(file) != "user":
        return relative_file(file, "")
    name = os.path.relpath(file, os.path.dirname(os.path.abspath(recipe.output)))
    name = name.replace(os.sep, "/")
    return name if name.startswith(".") else f"./{name}"
