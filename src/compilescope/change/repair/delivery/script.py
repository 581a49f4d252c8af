"""The script of `--script`: the program with its fixes, third-party code included.

The text of the main file is the script's own; changes of other modules are put into them when they
are imported, by a small class that the script carries. No file but the script is written.

A function that only does something else gets new code; one that is made in another way (other
decorators or defaults) is made anew; new statements run after the module's own. Any other change
needs the module's whole text, which only the user's own modules are given.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from compilescope.base.texts import one_line
from compilescope.change.repair.delivery import runtime
from compilescope.record.fingerprint import relative_file
from compilescope.record.stack import origin_of

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
    lines = _lines_of(recipe.text.removeprefix("\ufeff"))
    shebang = lines[:1] if lines[0].startswith("#!") else []
    # The script is UTF-8, whatever its original was.
    rest = [
        line
        for number, line in enumerate(lines)
        if not (number < len(shebang) or (number < 2 and _CODING.match(line)))
    ]
    body = _with_block(rest, setting) if setting else rest
    digest = _digest_of(_lines_of("\n".join(body)))
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
        lines = _lines_of(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        return []
    number = next((n for n, line in enumerate(lines) if line.startswith(_DIGEST)), None)
    if number is None:
        return []
    said = lines[number].removeprefix(_DIGEST).strip()
    return lines if _digest_of(lines[number + 1 :]) == said else []


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
        pieces = _pieces_of(old, new)
        if pieces.problems and origin_of(file) != "user":
            refused.append((file, "; ".join(pieces.problems)))
            continue
        calls += ["", f"_fixes.file({_text(_named(file, recipe))})"]
        if pieces.problems:
            made_for = _digest_of(_lines_of(old.removeprefix("\ufeff")))
            text = "\n".join(_lines_of(new.removeprefix("\ufeff")))
            calls.append(f"_fixes.module(made_for={_text(made_for)}, source={_quoted(text)})")
            continue
        for _, alike in itertools.groupby(pieces.parts, key=type):
            calls += _calls(list(alike))
    if not calls:
        return [], refused
    start = ["", _RUNTIME, *_runtime(), "", "", _CHANGES, "_fixes = _Fixes(__file__)"]
    return [*start, *calls, "", "_fixes.install()", "", _PROGRAM], refused


def _calls(alike: list[FunctionPiece | str]) -> list[str]:
    added = [part for part in alike if isinstance(part, str)]
    made = [f"_fixes.statements(source={_quoted(_BETWEEN.join(added))})"] if added else []
    return made + [_call(part) for part in alike if isinstance(part, FunctionPiece)]


def _call(piece: FunctionPiece) -> str:
    verb = "function" if piece.means == "code" else "function_anew"
    name, made_for = _text(piece.name), _text(piece.made_for)
    return f"_fixes.{verb}({name}, made_for={made_for}, source={_quoted(piece.source)})"


def _runtime() -> list[str]:
    lines = _lines_of(Path(runtime.__file__).read_text(encoding="utf-8"))
    return _lines_of("\n".join(lines[lines.index(_COPIED) :]).rstrip())


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


Definition = ast.FunctionDef | ast.AsyncFunctionDef
Means = Literal["code", "anew"]
_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


@dataclass(frozen=True)
class FunctionPiece:
    """One function, or method, that changed."""

    name: str
    """`Class.method`."""
    means: Means
    """New code for the function that is there, or a new function in its place."""
    made_for: str
    """The hash of the original's source."""
    source: str
    """The new definition as its author would see it, in the classes around it."""


@dataclass
class Pieces:
    """All that changed in one file."""

    parts: list[FunctionPiece | str] = field(default_factory=list)
    """Functions, and statements that are new at the module's top level, as they follow each other:
    a new statement may use a function that is made anew, and the other way round."""
    problems: list[str] = field(default_factory=list)
    """What cannot be done while the program runs."""


def _pieces_of(old: str, new: str) -> Pieces:
    """Both texts must be Python."""
    found = Pieces()
    _PieceComparison(_lines_of(old), _lines_of(new), found).block(
        ast.parse(old).body, ast.parse(new).body, ()
    )
    return found


def _lines_of(text: str) -> list[str]:
    """As Python counts them; `str.splitlines` also ends lines at form feeds and the like."""
    return _NEWLINE.split(text)


def _digest_of(lines: list[str]) -> str:
    """Of a definition's lines; the emitted scripts compute the same."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _first_line(node: ast.stmt) -> int:
    """Of its decorators, where it has some."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _definition_lines(node: Definition, lines: list[str]) -> list[str]:
    return lines[_first_line(node) - 1 : node.end_lineno]


@dataclass
class _PieceComparison:
    old_lines: list[str]
    new_lines: list[str]
    found: Pieces

    def block(self, old: list[ast.stmt], new: list[ast.stmt], outer: tuple[ast.stmt, ...]) -> None:
        """Statements at the top level, in a class, or in an `if` or `try` there. `outer` are those
        around them."""
        codes = SequenceMatcher(None, _keys(old), _keys(new), autojunk=False).get_opcodes()
        for kind, i1, i2, j1, j2 in codes:
            if kind == "equal":
                for before, after in zip(old[i1:i2], new[j1:j2], strict=True):
                    self._pair(before, after, outer)
                continue
            removed = [each for each in old[i1:i2] if not _is_idle(each)]
            for each in removed:
                self._problem(each.lineno, "is changed or removed")
            self._added([e for e in new[j1:j2] if not _is_idle(e) or _imports(e)], outer, removed)

    def _pair(self, old: ast.stmt, new: ast.stmt, outer: tuple[ast.stmt, ...]) -> None:
        if ast.dump(old) == ast.dump(new):
            return
        if isinstance(old, Definition) and isinstance(new, Definition):
            self._function(old, new, outer)
        elif isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
            if _frame(old) != _frame(new):
                self._problem(old.lineno, "changes how a class is created")
            else:
                self.block(old.body, new.body, (*outer, old))
        elif _frame(old) == _frame(new) and hasattr(old, "body"):
            for name in _BLOCKS:
                self._inner(getattr(old, name, []), getattr(new, name, []), (*outer, old))
        elif not _is_idle(old):
            self._problem(old.lineno, "is changed")

    def _inner(self, old: list[ast.AST], new: list[ast.AST], outer: tuple[ast.stmt, ...]) -> None:
        if any(isinstance(each, ast.ExceptHandler) for each in (*old, *new)):
            for before, after in zip(old, new, strict=True):
                self.block(before.body, after.body, outer)  # type: ignore[attr-defined]
        else:
            self.block(old, new, outer)  # type: ignore[arg-type]

    def _function(self, old: Definition, new: Definition, outer: tuple[ast.stmt, ...]) -> None:
        classes = [each for each in outer if isinstance(each, ast.ClassDef)]
        same = _making(old) == _making(new) and type(old) is type(new)
        same = same and _uses_class(old) == _uses_class(new)
        if not same and _uses_class(new) and classes:
            self._problem(old.lineno, "changes how a method that uses super() is created")
            return
        name = ".".join([*(each.name for each in classes), old.name])
        self.found.parts.append(
            FunctionPiece(
                name=name,
                means="code" if same else "anew",
                made_for=_digest_of(_definition_lines(old, self.old_lines)),
                source=self._scaffolded(new, [each.name for each in classes]),
            )
        )

    def _scaffolded(self, node: Definition, classes: list[str]) -> str:
        """The definition's own lines under headers that give it its class and its indentation:
        `super()` and names such as `__x` mean what they meant."""
        lines = _definition_lines(node, self.new_lines)
        headers = [f"{' ' * depth}class {name}:" for depth, name in enumerate(classes)]
        if not classes and lines[0][:1].isspace():
            headers = ["if True:"]
        return "\n".join([*headers, *lines])

    def _added(
        self, nodes: list[ast.stmt], outer: tuple[ast.stmt, ...], removed: list[ast.stmt]
    ) -> None:
        """They run together, with what stands between them."""
        if not nodes or removed:
            return
        if outer:
            self._problem(outer[-1].lineno, "gets a new statement in its body")
            return
        if any(isinstance(e, ast.ImportFrom) and e.module == "__future__" for e in nodes):
            self._problem(nodes[0].lineno, "is a new `from __future__` import")
            return
        first, last = nodes[0], nodes[-1]
        lines = self.new_lines[_first_line(first) - 1 : last.end_lineno]
        # After a semicolon a statement begins, or ends, within its line. Columns count bytes.
        lines[-1] = lines[-1].encode()[: last.end_col_offset].decode()
        if _first_line(first) == first.lineno:
            lines[0] = lines[0].encode()[first.col_offset :].decode()
        self.found.parts.append("\n".join(lines))

    def _problem(self, line: int, words: str) -> None:
        self.found.problems.append(f"line {line} {words}, outside any function")


def _keys(body: list[ast.stmt]) -> list[str]:
    """Definitions are the same statement if they have the same name; an `if` by its test."""
    return [_key(each) for each in body]


def _key(node: ast.stmt) -> str:
    if isinstance(node, Definition):
        return f"def {node.name}"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    return _frame(node) if hasattr(node, "body") else ast.dump(node)


def _frame(node: ast.stmt) -> str:
    """A compound statement without what is in its blocks."""
    parts = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name == "handlers":
            parts += [ast.dump(each.type) if each.type else "" for each in value]
        elif name not in _BLOCKS:
            values = value if isinstance(value, list) else [value]
            parts += [ast.dump(v) if isinstance(v, ast.AST) else repr(v) for v in values]
    return " ".join(parts)


def _making(node: Definition) -> list[str]:
    """What runs when the function is made: decorators and defaults. Annotations are for readers."""
    made = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
    return [ast.dump(each) if each is not None else "" for each in made]


def _uses_class(node: Definition) -> bool:
    """Does it close over the class that it stands in?"""
    return any(
        isinstance(each, ast.Name) and each.id in ("super", "__class__") for each in ast.walk(node)
    )


def _is_idle(node: ast.stmt) -> bool:
    """It can be left as it was: an import, a string, a `pass`."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return _imports(node) or isinstance(node, ast.Pass)


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))
