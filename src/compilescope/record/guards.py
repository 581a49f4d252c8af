"""The guards of a cache entry: as a tree with what checking it costs, and as torch prints them.

A log holds that text (`TREE_GUARD_MANAGER:` and what follows) where a live run has the guards
themselves; it is read when somebody asks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import msgspec

from compilescope.base.patterns import late
from compilescope.record.bodies import Guard
from compilescope.record.stack import CodeRef, Frame, origin_of, plain_function_name


class GuardCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """A leaf: something about one value that has to hold."""

    kind: str
    conditions: tuple[str, ...] = ()


class GuardNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that is guarded, and the values reached through it."""

    source: str
    """The value, as Dynamo writes it."""
    type: str = ""
    checks: tuple[GuardCheck, ...] = ()
    total_ns: float | None = None
    """Reaching the value and checking it and all below it; None where it was not measured."""
    own_ns: float | None = None
    """The same, less what is below it."""
    frame: Frame | None = None
    """The user's line that made Dynamo guard it."""
    children: tuple[GuardNode, ...] = ()

    def walk(self) -> list[GuardNode]:
        """This node and all below it, in the order in which they are checked."""
        return [self, *(node for child in self.children for node in child.walk())]


class GuardCost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cache entry: its tree and what checking it costs at each call."""

    compile_id: str | None
    frame: CodeRef | None
    tree: GuardNode
    warm_ns: float | None = None
    """One check of all guards, caches warm: the median over repeats."""
    cold_ns: float | None = None
    """The same with the processor's caches flushed first, as torch's own profiler measures it."""
    guards: int = 0
    unmeasured: int = 0
    """Nodes for which there was no time left."""


KIND = "guardtree"
"""Of artifacts that hold such a text."""
_BRANCH = "+- "
_MANAGER = late(r"^(?:\w+: )?\w*Manager(?:: source=(?P<source>.*?), accessed_by=)?")
_LEAF = late(r"^(?P<kind>[A-Z][A-Z0-9_]*): (?P<check>.*)$", re.S)
_COMMENT = late(r"(?<!\s)\s{2,}# (?P<text>.*)\Z", re.S)
_BEHIND_CODE = "  # "
_PLACE = late(r"(?P<file>\S[^\n]*?):(?P<line>\d{1,9}) in (?P<name><\w+>|[^\s(]+)")
_LOCAL = late(r"\bL\['([^']+)'\]")
_AS_TENSOR = late(r"\b___as_tensor\(([^()]+)\)\.item\(\)")
_KEYS = late(r"list\(dict\.keys\(([\w.\[\]']+)\)\)")
_UNALIASED = late(r"^check_no_aliasing\((.*)\)$", re.S)
_UNALIASED_BYTES = b"check_no_aliasing("
_LEAVES = late(rb"\+- (?!LAMBDA_GUARD)([A-Z][A-Z0-9_]*): ")
_SHARED = 400
"""Letters of a check that names many tensors, where it is told again with each of them. Chosen."""
_MOST_SHARED = 4_000_000
"""Letters, with all of them together. Chosen: whoever writes them down again writes them each
time."""
_LEAST_SHARED = len("check_no_aliasing(")
_MOST_NAMES = 4000
"""Short names of files that are looked up. Chosen: a text may hold any number of them, and then
they stay short."""
_TOP = "SHAPE"
_ROOT = "L"
_IN_PARTS = frozenset(("DIMENSION_DYNAMIC_MARKING_GUARD", _TOP))
"""One guard, a line for each of its conditions."""
_guards = msgspec.json.Decoder(list[Guard])


def readable(expression: str) -> str:
    """`L['x']` is `x` to the person who wrote it."""
    # A look first, here and below: this runs in the user's program, for each guard that failed.
    if "L['" in expression:
        expression = _LOCAL.sub(r"\1", expression)
    if "___as_tensor(" in expression:
        # How torch 2.11 reads a number that is dynamic.
        expression = _AS_TENSOR.sub(r"\1", expression)
    return _KEYS.sub(r"\1.keys()", expression) if "dict.keys" in expression else expression


def without_comment(check: str) -> str:
    return (_COMMENT.sub("", check) if "# " in check else check).strip()


def decode_guards(text: str, files: Iterable[str] = ()) -> list[Guard]:
    """The guards in an artifact: a list of them, or torch's own text.

    That text shortens the names of files; `files` are whole ones that it may mean.
    """
    if text.startswith("["):
        try:
            return _guards.decode(text)
        except (RecursionError, UnicodeError) as error:
            raise msgspec.DecodeError(str(error)) from None
    return read_guard_tree(text, files)


def read_guard_tree(text: str, files: Iterable[str] = ()) -> list[Guard]:
    known = WholeFiles(files)
    places: dict[str, Frame | None] = {}
    sources: dict[int, str] = {}
    guards: list[Guard] = []
    last: tuple[int, str] | None = None
    parts: list[str] = []
    """The checks of the last guard, where it may have more."""
    for line in text.splitlines():
        at = line.find(_BRANCH)
        depth, rest = at // 2, line[at + len(_BRANCH) :]
        # No expression: one keeps what it needs to go back to each bar, and a line may be all bars.
        if at < 0 or line[:at] != "| " * depth:
            continue
        leaf = _LEAF.match(rest)
        if leaf is None:
            manager = _MANAGER.match(rest)
            sources[depth] = (manager["source"] if manager else None) or _ROOT
            _join(guards, parts)
            last, parts = None, []
            continue
        kind, check = leaf["kind"], leaf["check"]
        if depth == 0:
            kind = _TOP
        # The comment is the same behind all guards that one line asked for.
        bare, sign, comment = check.partition("  #")
        bare = bare.strip()
        here = (depth, kind)
        if here == last and kind in _IN_PARTS:
            parts.append(bare)
            continue
        _join(guards, parts)
        last, parts = here, [bare]
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
            # Whole, it would be with each of them all of them.
            most = max(min(_SHARED, _MOST_SHARED // (len(others) + 1)), _LEAST_SHARED)
            short = bare if len(bare) <= most else f"{bare[:most]}…"
            guards += [Guard(name, kind, (short,), stack) for name in others]
    _join(guards, parts)
    return guards


def _join(guards: list[Guard], parts: list[str]) -> None:
    """Give the last guard all of its checks at once."""
    if len(parts) > 1:
        old = guards[-1]
        guards[-1] = Guard(old.source, old.kind, tuple(parts), old.stack)


class WholeFiles:
    """Whole names of files, found by their ends."""

    def __init__(self, files: Iterable[str] = ()) -> None:
        """Files may be added to `files` later; none is taken away."""
        self._files = files
        self._seen = 0
        self._by_name: dict[str, list[str]] = {}
        self._found: dict[str, str] = {}

    def find(self, short: str) -> str:
        """The one that `short` is the end of, or else `short` itself.

        Torch takes off what a file and torch have in common, and one letter: of files that have the
        root alone in common with it, that is the first letter of a name (seen in 2.9 to 2.13).
        """
        if short not in self._found and len(self._found) < _MOST_NAMES:
            for file in itertools.islice(self._files, self._seen, None):
                self._by_name.setdefault(file.rpartition("/")[2], []).append(file)
                self._seen += 1
            end = "/" + short
            alike = self._by_name.get(short.rpartition("/")[2], ())
            whole = [file for file in alike if file == short or file.endswith(end)]
            whole += [file for file in alike if file.startswith("/") and file[2:] == short]
            self._found[short] = next(iter(whole), short)
        return self._found.get(short, short)


def guard_place(check: str, files: WholeFiles) -> Frame | None:
    """The user's line in the comment behind a check."""
    comment = _COMMENT.search(check)
    code, _, place = comment["text"].partition(_BEHIND_CODE) if comment else ("", "", "")
    found = _PLACE.match(place)
    if found is None or "\n" in code:
        return None
    file = files.find(found["file"])
    name, source = plain_function_name(found["name"]), code.strip()
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
    shared = [piece.partition(b"\n")[0] for piece in text.split(_UNALIASED_BYTES)[1:]]
    if shared:
        names = (piece.rpartition(b")")[0] for piece in shared)
        counts["NO_TENSOR_ALIASING"] = sum(each.count(b", ") + 1 for each in names)
    for kind in _IN_PARTS & counts.keys():
        counts[kind] = max(1, counts[kind] // _parts(kind, text))
    return counts


def _parts(kind: str, text: bytes) -> int:
    """Of how many lines a guard in parts consists: those that follow the first one."""
    if kind == _TOP:
        return text.count(b"\n")
    mark = b"+- %s: " % kind.encode()
    lines = text[text.find(mark) :].split(b"\n")[:-1]
    follow = itertools.takewhile(lambda line: line.lstrip(b"| \t").startswith(mark), lines)
    return max(1, sum(1 for _ in follow))
