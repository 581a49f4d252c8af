"""The guards of a cache entry as torch prints them (`TREE_GUARD_MANAGER:` and what follows).

A log holds this text where a live run has the guards themselves; it is read when somebody asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from compilescope.model.bodies import Guard
from compilescope.model.stack import Frame, origin_of, plain_function_name

KIND = "guardtree"
"""Of artifacts that hold such a text."""
_LINE = re.compile(r"^(?P<bars>(?:\| )*)\+- (?P<rest>.*)$")
_MANAGER = re.compile(
    r"^(?:\w+: )?\w*Manager(?:: source=(?P<source>.*?), accessed_by=.*?)?"
    r"(?:, type=(?P<type><class '.*?'>|.*?))?(?:, tag_safe=.*)?$"
)
_LEAF = re.compile(r"^(?P<kind>[A-Z][A-Z0-9_]*): (?P<check>.*)$", re.S)
_COMMENT = re.compile(r"\s{2,}# .*\Z", re.S)
_PLACE = re.compile(
    r"\s{2,}# (?:(?P<code>.*?)  # )?"
    r"(?P<file>\S[^\n]*?):(?P<line>\d{1,9}) in (?P<name><\w+>|[^\s(]+)"
)
_LOCAL = re.compile(r"\bL\['([^']+)'\]")
_KEYS = re.compile(r"list\(dict\.keys\(([\w.\[\]']+)\)\)")
_UNALIASED = re.compile(r"^check_no_aliasing\((.*)\)$", re.S)
_UNALIASED_BYTES = re.compile(rb"check_no_aliasing\(([^\n]*)\)")
_LEAVES = re.compile(rb"\+- (?!LAMBDA_GUARD)([A-Z][A-Z0-9_]*): ")
_TOP = "SHAPE"
_ROOT = "L"
_IN_PARTS = frozenset(("DIMENSION_DYNAMIC_MARKING_GUARD", _TOP))
"""One guard, a line for each of its conditions."""
_guards = msgspec.json.Decoder(list[Guard])


def readable(expression: str) -> str:
    """`L['x']` is `x` to the person who wrote it."""
    return _KEYS.sub(r"\1.keys()", _LOCAL.sub(r"\1", expression))


def without_comment(check: str) -> str:
    return _COMMENT.sub("", check).strip()


def decode_guards(text: str, files: Iterable[str] = ()) -> list[Guard]:
    """The guards in an artifact: a list of them, or torch's own text.

    That text shortens the names of files; `files` are whole ones that it may mean.
    """
    if text.startswith("["):
        return _guards.decode(text)
    return read_guard_tree(text, files)


def read_guard_tree(text: str, files: Iterable[str] = ()) -> list[Guard]:
    known = WholeFiles(files)
    places: dict[str, Frame | None] = {}
    sources: dict[int, str] = {}
    guards: list[Guard] = []
    last: tuple[int, str] | None = None
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        depth, rest = len(found["bars"]) // 2, found["rest"]
        leaf = _LEAF.match(rest)
        if leaf is None:
            manager = _MANAGER.match(rest)
            sources[depth] = (manager["source"] if manager else None) or _ROOT
            last = None
            continue
        kind, check = leaf["kind"], leaf["check"]
        if depth == 0:
            kind = _TOP
        # The comment is the same behind all guards that one line asked for.
        bare, sign, comment = check.partition("  #")
        bare = bare.strip()
        here = (depth, kind)
        if here == last and kind in _IN_PARTS:
            old = guards[-1]
            guards[-1] = Guard(old.source, old.kind, (*old.checks, bare), old.stack)
            continue
        last = here
        if comment not in places:
            places[comment] = guard_place(f"{sign}{comment}", known)
        place = places[comment]
        stack = (place,) if place is not None else ()
        source = sources.get(depth - 1, "") if depth else ""
        guards.append(Guard(source, kind, (bare,), stack))
        shared = _UNALIASED.match(bare)
        if shared:
            # Printed once, checked at each of the tensors.
            others = [name for name in shared[1].split(", ") if name != source]
            guards += [Guard(name, kind, (bare,), stack) for name in others]
    return guards


class WholeFiles:
    """Whole names of files, found by their ends."""

    def __init__(self, files: Iterable[str] = ()) -> None:
        self._files = files
        self._found: dict[str, str] = {}

    def find(self, short: str) -> str:
        """The one that `short` is the end of, or else `short` itself."""
        if short not in self._found:
            end = "/" + short
            whole = (file for file in self._files if file == short or file.endswith(end))
            self._found[short] = next(whole, short)
        return self._found[short]


def guard_place(check: str, files: WholeFiles) -> Frame | None:
    """The user's line in the comment behind a check."""
    found = _PLACE.search(check)
    if found is None or found["code"] is None:
        return None
    file = files.find(found["file"])
    name, source = plain_function_name(found["name"]), found["code"].strip()
    return Frame(file, int(found["line"]), name, source=source, origin=origin_of(file))


def count_kinds(text: bytes) -> dict[str, int]:
    """How many guards of each kind a text has, without reading more of it."""
    counts: dict[str, int] = {}
    for kind in _LEAVES.findall(text):
        counts[kind.decode()] = counts.get(kind.decode(), 0) + 1
    top = text.count(b"\n+- LAMBDA_GUARD: ") + text.count(b"\n\t+- LAMBDA_GUARD: ")
    inner = text.count(b"+- LAMBDA_GUARD: ") - top
    if inner:
        counts["LAMBDA_GUARD"] = inner
    if top:
        counts[_TOP] = top
    shared = _UNALIASED_BYTES.findall(text)
    if shared:
        counts["NO_TENSOR_ALIASING"] = sum(names.count(b", ") + 1 for names in shared)
    for kind in _IN_PARTS & counts.keys():
        counts[kind] = max(1, counts[kind] // _parts(kind, text))
    return counts


def _parts(kind: str, text: bytes) -> int:
    """Of how many lines a guard in parts consists: those that follow the first one."""
    if kind == _TOP:
        return text.count(b"\n")
    run = re.search(rb"(?:[| \t]*\+- " + kind.encode() + rb": [^\n]*\n)+", text)
    return run[0].count(b"\n") if run else 1
