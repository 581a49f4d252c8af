"""A copy of torch to look into (a wheel, a checkout or an installation, or its table alone), and
which graph breaks it raises: the gb_type of every call in Dynamo's source.

Nothing is installed, unpacked or imported: files are read where they are, each up to a limit.

Read as text with `ast`, never imported. A type that only exists at run time cannot be told; one
whose words stand anywhere in the source counts as raised.
"""

from __future__ import annotations

import ast
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.table import (
    BIGGEST_BYTES,
    PLACE,
    Registry,
    load_registry,
    parse_registry,
    version_in,
)

_WHEEL_TABLE = f"torch/{PLACE.as_posix()}"
_DYNAMO = "torch/_dynamo/"
_RELEASE = re.compile(r"\d+\.\d+(?:[^\d\s]\S*)?")


def read_table(source: Path) -> Registry:
    """The table of graph breaks in a wheel, a folder or a JSON file."""
    if source.is_dir():
        return _folder_table(source)
    if _is_zip(source):
        return _wheel_table(source)
    return load_registry(source)


def dynamo_sources(source: Path) -> Iterator[tuple[str, str]]:
    """The Python files of Dynamo in a wheel or a folder: name and text. None for a table alone."""
    if source.is_dir():
        folder = _torch_folder(source)
        for path in sorted((folder / "_dynamo").rglob("*.py")) if folder else ():
            yield path.relative_to(folder or path).as_posix(), _text(path.read_bytes())
    elif _is_zip(source):
        with _open(source) as wheel:
            for name in sorted(wheel.namelist()):
                if name.startswith(_DYNAMO) and name.endswith(".py"):
                    data = _member(wheel, name, source)
                    yield name.removeprefix("torch/"), _text(data)


def torch_of(table: Registry) -> Path | None:
    """The folder of the torch that a table lies in; None for a table that stands alone."""
    path = Path(table.path)
    # Inside a wheel it has the same name, and no folder.
    inside = path.parent.name == PLACE.parent.name and path.parent.is_dir()
    return path.parent.parent if inside else None


def _torch_folder(source: Path) -> Path | None:
    places = (source / "torch", source, source / "src" / "torch")
    return next((place for place in places if (place / "_dynamo").is_dir()), None)


def _folder_table(source: Path) -> Registry:
    folder = _torch_folder(source)
    path = folder / PLACE if folder else source / PLACE.name
    if not path.is_file():
        raise ToolError(
            f"{source} contains no torch with a graph-break table.",
            f"Its place there is {_WHEEL_TABLE}; torch has it since 2.8.",
        )
    found = load_registry(path)
    if found.torch is None and folder is not None:
        # A checkout that was never built has no version.py, only version.txt.
        return Registry(found.entries, found.path, _version_text(folder.parent / "version.txt"))
    return found


def _version_text(path: Path) -> str | None:
    try:
        found = _RELEASE.fullmatch(path.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        return None
    return found[0] if found else None


def _is_zip(source: Path) -> bool:
    try:
        return source.suffix == ".whl" or zipfile.is_zipfile(source)
    except OSError:
        return False


def _open(source: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except FileNotFoundError:
        raise ToolError(f"There is no file {source}.") from None
    except OSError as error:
        raise ToolError(f"{source} could not be read: {error.strerror or error}.") from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ToolError(f"{source} is not a complete wheel: {error}.") from None


def _wheel_table(source: Path) -> Registry:
    with _open(source) as wheel:
        names = set(wheel.namelist())
        if _WHEEL_TABLE not in names:
            raise ToolError(
                f"The wheel {source} contains no graph-break table.",
                "It is not a torch wheel, or it is older than 2.8.",
            )
        data = _member(wheel, _WHEEL_TABLE, source)
        version = None
        if "torch/version.py" in names:
            version = version_in(_text(_member(wheel, "torch/version.py", source)))
    return parse_registry(data, f"{source}/{_WHEEL_TABLE}", version)


def _member(wheel: zipfile.ZipFile, name: str, source: Path) -> bytes:
    """Never more than the limit, whatever size the wheel claims."""
    try:
        with wheel.open(name) as stream:
            data = stream.read(BIGGEST_BYTES + 1)
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, EOFError, zlib.error) as error:
        raise ToolError(f"{name} in {source} could not be read: {error}.") from None
    if len(data) > BIGGEST_BYTES:
        limit = BIGGEST_BYTES // 1024 // 1024
        raise ToolError(f"{name} in {source} is larger than {limit} MB.")
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_MARK = "gb_type"


class BreakSite(msgspec.Struct, frozen=True):
    """A place that raises a graph break."""

    file: str
    line: int
    gb_type: str
    """With `{placeholders}` where it has parts known at run time only."""


class RaisedBreaks(msgspec.Struct, frozen=True, dict=True):
    """What the source of a torch says."""

    calls: tuple[BreakSite, ...]
    untold: tuple[BreakSite, ...]
    """Calls whose type is only known at run time; `gb_type` is the expression."""
    texts: frozenset[str]
    """Every string in the files that raise any, joined where its author broke it."""
    unread: tuple[str, ...] = ()
    """Files that are not valid Python here."""

    def raises(self, gb_type: str) -> bool:
        """Is there a call for it, or do its words stand in the source at all?"""
        if _fold(gb_type) in self.texts:
            return True
        pattern = _pattern(gb_type)
        return pattern is not None and any(pattern.fullmatch(text) for text in self.texts)

    def places(self, gb_type: str) -> tuple[BreakSite, ...]:
        """The calls for it."""
        exact = self._by_type.get(_fold(gb_type), ())
        return tuple(exact) or tuple(c for c in self._open if same_type(c.gb_type, gb_type))

    @cached_property
    def _by_type(self) -> dict[str, list[BreakSite]]:
        found: dict[str, list[BreakSite]] = {}
        for call in self.calls:
            found.setdefault(_fold(call.gb_type), []).append(call)
        return found

    @cached_property
    def _open(self) -> list[BreakSite]:
        return [call for call in self.calls if "{" in call.gb_type]


def raised_types(sources: Iterable[tuple[str, str]]) -> RaisedBreaks:
    """From the names and texts of Dynamo's files."""
    calls: list[BreakSite] = []
    untold: list[BreakSite] = []
    texts: set[str] = set()
    unread: list[str] = []
    for name, text in sources:
        if _MARK not in text:
            continue  # Reading the syntax of all of Dynamo takes seconds.
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            unread.append(name)
            continue
        for node in _telling(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(_fold(node.value))
            elif isinstance(node, ast.JoinedStr):
                texts.add(_fold(_joined(node)))
            elif isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg == _MARK:
                        told, rest = _types_of(keyword.value)
                        calls += [BreakSite(name, node.lineno, text) for text in told]
                        untold += [BreakSite(name, node.lineno, text) for text in rest]
    # In the order of the source, whatever the order of the visit.
    calls.sort(key=lambda call: (call.file, call.line))
    untold.sort(key=lambda call: (call.file, call.line))
    return RaisedBreaks(tuple(calls), tuple(untold), frozenset(texts), tuple(unread))


_Telling = ast.Constant | ast.JoinedStr | ast.Call


def _telling(tree: ast.AST) -> Iterator[_Telling]:
    """The strings and calls of a file. `ast.walk` would visit names and contexts as well, which
    are most of it, and take three times as long."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Telling):
            yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                waiting += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, _SILENT):
                waiting.append(value)


_SILENT = (ast.Name, ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


def _types_of(node: ast.expr) -> tuple[list[str], list[str]]:
    """The types that an expression can be, and what of it cannot be told."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value.strip()], []
    if isinstance(node, ast.JoinedStr):
        return [_joined(node)], []
    if isinstance(node, ast.IfExp):
        first, second = _types_of(node.body), _types_of(node.orelse)
        return first[0] + second[0], first[1] + second[1]
    return [], [ast.unparse(node)]


def _joined(node: ast.JoinedStr) -> str:
    parts = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        elif isinstance(value, ast.FormattedValue):
            parts.append("{" + ast.unparse(value.value) + "}")
    return "".join(parts).strip()


def _fold(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=4096)
def _pattern(gb_type: str) -> re.Pattern[str] | None:
    parts = re.split(r"\{[^{}]*\}", _fold(gb_type))
    if len(parts) == 1 or not "".join(parts).strip():
        return None
    return re.compile(".+".join(map(re.escape, parts)))


def same_type(one: str, other: str) -> bool:
    """Are two types the same but for their parts known at run time?"""
    if _fold(one) == _fold(other):
        return True
    for left, right in ((one, other), (other, one)):
        pattern = _pattern(left)
        if pattern is not None and pattern.fullmatch(_fold(right)):
            return True
    return False
