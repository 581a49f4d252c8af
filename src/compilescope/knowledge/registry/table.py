"""PyTorch's own table of graph breaks, `torch/_dynamo/graph_break_registry.json`.

Found on disk without importing torch, or read from a file given. An id may have several
variants: the table keeps the words of earlier versions, the newest first.

The table is made by a script that copies arguments of `unimplemented(...)` as they stand: hints
arrive in the pieces in which they were typed, and an explanation may be the name of a variable.
What only exists at run time is left out or shown as `<placeholder>`, never invented.
"""

from __future__ import annotations

import ast
import errno
import importlib.machinery
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.patterns import late
from compilescope.record.plain_files import read_given

PLACE = Path("_dynamo") / "graph_break_registry.json"
BIGGEST_BYTES = 32 * 1024 * 1024
"""Of a table. Chosen: four times what a download may have."""
_ID = late(r"(?:GB)?0*([0-9]{1,6})", re.IGNORECASE)
_VERSION = late(r"^__version__[^=]*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


class RawVariant(msgspec.Struct, frozen=True, rename="pascal"):
    """One wording as it stands in PyTorch's file: pieces of source, with `{placeholders}`."""

    gb_type: str = msgspec.field(name="Gb_type")
    context: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()


class Variant(msgspec.Struct, frozen=True):
    """One wording of a graph break."""

    gb_type: str
    """The type as PyTorch reports it; in a few places the name of a variable that holds it."""
    context: str
    """What PyTorch's debug context shows, with `<placeholders>`."""
    explanation: str
    """Empty where PyTorch only makes it at run time."""
    hints: tuple[str, ...]
    raw: RawVariant


class Entry(msgspec.Struct, frozen=True):
    """A graph-break id and all its wordings."""

    gb_id: str
    variants: tuple[Variant, ...]
    """The newest first."""

    @property
    def titles(self) -> tuple[str, ...]:
        """The distinct types, without those that are only a variable's name."""
        named = (v.gb_type for v in self.variants if not is_code(v.gb_type))
        return tuple(dict.fromkeys(named))

    @property
    def title(self) -> str:
        return self.titles[0] if self.titles else self.gb_id

    @property
    def explanations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v.explanation for v in self.variants if v.explanation))

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints of all variants, each once."""
        return tuple(dict.fromkeys(hint for v in self.variants for hint in v.hints))

    @property
    def contexts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v.context for v in self.variants if v.context))


class Registry(msgspec.Struct, frozen=True, dict=True):
    """The table: iterate it, look up ids and types, search its words."""

    entries: tuple[Entry, ...]
    """In order of id."""
    path: str
    torch: str | None
    """The version of the torch it belongs to; None for a file that stands alone."""
    name: str | None = None
    """What people call it, where that is not a version of torch: "PyTorch main (2026-11-16)"."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def _by_id(self) -> dict[str, Entry]:
        return {entry.gb_id: entry for entry in self.entries}

    def get(self, gb_id: str) -> Entry | None:
        """By id, written GB0124, gb124 or 124."""
        return self._by_id.get(normal_id(gb_id) or "")

    def by_type(self, gb_type: str) -> tuple[Entry, ...]:
        """The entries with this type. One type can belong to two ids, and some types have parts
        that are only known at run time."""
        wanted = gb_type.strip()
        exact = tuple(entry for entry in self.entries if wanted in entry.titles)
        return exact or tuple(
            entry
            for entry in self.entries
            if any("{" in title and _fits(title, wanted) for title in entry.titles)
        )

    def search(self, words: Iterable[str], labels: Mapping[str, str] | None = None) -> list[Entry]:
        """Entries that have every one of the words, the best first.

        `labels` are more words for an id, such as its category's.
        """
        wanted = [word.casefold() for phrase in words for word in phrase.split()]
        ranked: list[tuple[float, int, str, Entry]] = []
        for entry in self.entries:
            scores = [_score(word, entry, (labels or {}).get(entry.gb_id, "")) for word in wanted]
            if scores and all(scores):
                # Of equals, the shorter type is nearer to what was asked.
                ranked.append((-sum(scores), len(entry.title), entry.gb_id, entry))
        return [item[-1] for item in sorted(ranked, key=lambda item: item[:-1])]


def normal_id(text: str) -> str | None:
    """`GB0124` for GB0124, gb124 or 124; None for what is no id."""
    found = _ID.fullmatch(text.strip())
    return f"GB{int(found[1]):04d}" if found else None


def load_registry(file: Path | None = None) -> Registry:
    """The table of the installed torch, or of `file`."""
    path = file if file is not None else table_file()
    return parse_registry(_read(path), str(path), _version_beside(path))


def parse_registry(data: bytes, path: str, torch: str | None) -> Registry:
    """The table in `data`, which was read from `path` and belongs to this version of torch."""
    if not data.strip():
        raise ToolError(f"{path} is empty.")
    entries = []
    for gb_id, variants in _decode(data, path).items():
        known = normal_id(gb_id)
        if known is None or not gb_id.upper().startswith("GB") or not variants:
            raise ToolError(f"{path} is not a graph-break table: it has the entry {gb_id[:40]!r}.")
        entries.append(Entry(known, tuple(_variant(variant) for variant in variants)))
    if not entries:
        raise ToolError(f"{path} is a graph-break table without entries.")
    if len({entry.gb_id for entry in entries}) < len(entries):
        raise ToolError(f"{path} is not a graph-break table: it has an id twice.")
    entries.sort(key=lambda entry: (len(entry.gb_id), entry.gb_id))
    return Registry(tuple(entries), path, torch)


def version_in(text: str) -> str | None:
    """The version that a torch/version.py declares."""
    found = _VERSION.search(text)
    return found[1] if found else None


def _variant(raw: RawVariant) -> Variant:
    return Variant(
        gb_type=raw.gb_type.strip(),
        context=clean_context(raw.context),
        explanation=clean_explanation(raw.explanation),
        hints=join_hints(list(raw.hints)),
        raw=raw,
    )


def table_file() -> Path:
    """Of the installed torch."""
    for folder in _torch_folders():
        if (folder / PLACE).is_file():
            return folder / PLACE
    raise ToolError(
        "This Python has no torch with a graph-break table.",
        "Pass a table with --file: torch/_dynamo/graph_break_registry.json of any torch.",
    )


def _torch_folders() -> Iterator[Path]:
    """Where torch lies, found by looking for it only."""
    # The path first: it answers even where something forbids the import.
    spec = importlib.machinery.PathFinder.find_spec("torch")
    if spec is not None:
        yield from map(Path, spec.submodule_search_locations or ())
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return
    if spec is not None:
        yield from map(Path, spec.submodule_search_locations or ())


def _read(path: Path) -> bytes:
    try:
        return read_given(path, most=BIGGEST_BYTES)
    except FileNotFoundError:
        raise ToolError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise ToolError(f"{path} is a folder, not a graph-break table.") from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            limit = BIGGEST_BYTES // 1024 // 1024
            message = f"{path} is larger than {limit} MB: too large for a graph-break table."
            raise ToolError(message) from None
        raise ToolError(f"{path} could not be read: {error.strerror or error}.") from None


def _decode(data: bytes, path: str) -> dict[str, list[RawVariant]]:
    try:
        return msgspec.json.decode(data, type=dict[str, list[RawVariant]])
    except msgspec.ValidationError as error:
        raise ToolError(f"{path} is not a graph-break table: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = str(error).rstrip(".") or "it is nested too deeply"
        raise ToolError(f"{path} is not valid JSON: {why}.") from None


def _version_beside(path: Path) -> str | None:
    """From torch/version.py, when the table lies where torch keeps it."""
    try:
        text = (path.resolve().parent.parent / "version.py").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return version_in(text)


def _fits(pattern: str, text: str) -> bool:
    """Does `text` have the form of a type with `{placeholders}`?"""
    parts = re.split(r"\{[^{}]*\}", pattern)
    return re.fullmatch(".+".join(map(re.escape, parts)), text) is not None


_WEIGHTS = (("titles", 12.0), ("hints", 3.0), ("explanations", 3.0), ("contexts", 1.0))
"""Chosen: a word in the type says most, one in the context may be chance."""


def _score(word: str, entry: Entry, label: str) -> float:
    """How well one word fits: a whole word counts more than a part, a type more than a hint."""
    if normal_id(word) == entry.gb_id:
        return 100.0
    score = 60.0 if word in entry.gb_id.casefold() and word.startswith("gb") else 0.0
    for field, weight in _WEIGHTS:
        score = max(score, weight * _fit(word, " ".join(getattr(entry, field))))
    return max(score, 6.0 * _fit(word, label))


def _fit(word: str, text: str) -> float:
    folded = text.casefold()
    if word not in folded:
        return 0.0
    whole = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", folded)
    return 1.0 if whole else 0.4


_EAGER_HINT = "Your code may result in an error"
_CALL_OF_ONE = late(r"(?:str|repr|typestr|fqn)\(([\w.]+)\)")
_TYPE_NAME = late(
    r"(?:type\(([\w.]+)\)(?:\.__name__)?|([\w.]+)\.(?:python_type(?:_name)?\(\)(?:\.__name__)?))"
)
_METHOD_OF_NAME = late(r"([\w.]+)\.(?:debug_repr|as_python_constant|get_name|get_function)\(\)")
_PLAIN = late(r"[\w.]+(?:\(\)|\[\d+\]|\([\w.]+\))?")


def clean_explanation(raw: str) -> str:
    """The explanation as prose; empty where the table holds only the code that makes one."""
    text = raw.strip()
    parts = _strings_of_expression(text)
    if parts is not None:
        text = "".join(parts)
    return _tidy(_with_placeholders(text))


def clean_context(raw: str) -> str:
    """The debug context, in which most values are only known at run time."""
    text = raw.strip()
    if _strings_of_expression(text) == []:
        return f"<{_readable(text)}>"
    return _tidy(_with_placeholders(text))


def join_hints(pieces: list[str]) -> tuple[str, ...]:
    """Whole hints: a piece that does not end its sentence goes on in the next one."""
    hints: list[str] = []
    goes_on = False
    for piece in pieces:
        text = _tidy(_with_placeholders(piece))
        if not text:
            continue
        # A hint that began with a small letter would be the rest of the one before.
        if hints and (goes_on or piece[0].isspace() or text[0].islower()):
            bullet = text.startswith("* ")
            joint = ", " if bullet and not hints[-1].endswith(":") else " "
            hints[-1] += joint + text.removeprefix("* ")
        else:
            hints.append(text)
        # Pieces of one string end in the blank that separates them. This one hint ends in a
        # blank too, although it is whole (seen in torch 2.11 to 2.15).
        goes_on = piece[-1:].isspace() and not piece.startswith(_EAGER_HINT)
    return tuple(dict.fromkeys(hints))


def is_code(name: str) -> bool:
    """Is it the name of a variable where a graph-break type should stand?"""
    return name.isidentifier() and (name.startswith("_") or name in ("gb_type", "msg"))


def _strings_of_expression(text: str) -> list[str] | None:
    """The string literals in a Python expression; None for anything that is prose.

    "tensor.is_inference() is not supported" is valid Python as well, so only the forms count that
    a script can have copied: names, calls, literals and their sums.
    """
    try:
        node = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.Name | ast.Call | ast.BinOp | ast.Constant | ast.JoinedStr):
        return None
    return list(_literals(node))


def _literals(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.FormattedValue):
        return ["{" + ast.unparse(node.value) + "}"]
    return [text for child in ast.iter_child_nodes(node) for text in _literals(child)]


def _with_placeholders(text: str) -> str:
    """`{self.value}` becomes `<value>`; braces may nest."""
    out: list[str] = []
    start = 0
    while True:
        opening = text.find("{", start)
        closing = _closing_brace(text, opening)
        if opening < 0 or closing < 0:
            return "".join(out) + text[start:]
        out.append(text[start:opening])
        inside = text[opening + 1 : closing]
        if text[max(opening - 2, 0) : opening] in ("f'", 'f"'):
            out.append(text[opening : closing + 1])  # An f-string that the hint itself shows.
        elif text[max(opening - 1, 0) : opening] == "<" and text[closing + 1 : closing + 2] == ">":
            out.append(_readable(inside))
        else:
            out.append(f"<{_readable(inside)}>")
        start = closing + 1


def _closing_brace(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)) if opening >= 0 else ():
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1


def _readable(expression: str) -> str:
    """A short name for what a placeholder stands for."""
    name = expression.removesuffix("!r").removesuffix("=").strip()
    name = _CALL_OF_ONE.sub(r"\1", name)
    if found := _TYPE_NAME.fullmatch(name):
        return f"type of {_short(found[1] or found[2])}"
    if found := _METHOD_OF_NAME.fullmatch(name):
        return _short(found[1])
    return _short(name) if _PLAIN.fullmatch(name) else "..."


def _short(name: str) -> str:
    short = name.removeprefix("self.").removesuffix(".__name__")
    return {"self": "value", "": "value"}.get(short, short)


def _tidy(text: str) -> str:
    return " ".join(text.split())
