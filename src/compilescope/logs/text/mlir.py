"""MLIR modules as text: what is in them, and where in the program it came from.

Operations are counted and their locations, and no line is kept. `loc("f"("file.py":8:0))` is a
frame, `callsite(#loc1 at #loc2)` a frame and its callers, a name around them the operator.
Tenstorrent's legacy compile packs it all into one name:
`1|Linear[L['s'].fc]|F:6|forward|7|aten__mm`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compilescope.logs.text.dynamo.frames import is_program, origin
from compilescope.logs.text.lines import plain
from compilescope.record.logged import ModuleStage, OpPlace
from compilescope.record.stack import CodeRef, Frame, plain_function_name

_OP = re.compile(rb'\s*(?:%[\w$.:#%, -]{1,4000}? = )?"?([A-Za-z_][\w$]*\.[\w$.]+)"?[ (<]')
_OPS = re.compile(_OP.pattern.replace(rb"\s*(?:%", rb"^ +(?:%", 1), re.M)
_END_LOC = re.compile(rb"loc\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*$", re.S)
_NAME = re.compile(rb"module @([\w$.-]{1,300})")
_STRUCTURE = re.compile(
    rb"(?:^|\.)(?:func|func_v1|return|return_v1|module|device_module|mesh|device|terminator|yield)$"
)
_BODY_STARTS = (b" ", b"#", b"}", b"^")
_HEAD = 4400
"""Bytes of a line within which its operation is looked for. Chosen: the name comes right after the
results, and a constant behind it may be megabytes long."""
# Chosen: bounds for memory, and as many kinds and places as are shown.
_TAIL = 1200
_MOST_KINDS = 2000
_MOST_USED_LOCS = 200_000
_SHOWN_KINDS = 40
_SHOWN_PLACES = 40
_LOCATED = 20_000
"""Different locations that are followed back to the program. Chosen: it bounds the time."""


class ModuleBody:
    """The state of reading one module."""

    def __init__(self, *, located: bool) -> None:
        """`located`: follow its operations back to the program."""
        self.located = located
        self._kinds: Counter[bytes] = Counter()
        self._used: Counter[bytes] = Counter()
        self.locs = Locs()
        self.lines = 0
        self.name = ""

    def line(self, line: bytes) -> None:
        self.lines += 1
        first = line[:1]
        if first == b"#":
            if self.located:
                self.locs.add(line)
            return
        if first == b"m" and line.startswith(b"module"):
            found = _NAME.match(line)
            if found is not None and not self.name:
                self.name = plain(found[1])
            return
        found = _OP.match(line)
        if found is None or _STRUCTURE.search(found[1]):
            return
        kinds = self._kinds
        if len(kinds) < _MOST_KINDS or found[1] in kinds:
            kinds[found[1]] += 1
        if self.located:
            end = _END_LOC.search(line[-_TAIL:])
            if end is not None and (len(self._used) < _MOST_USED_LOCS or end[1] in self._used):
                self._used[end[1]] += 1

    def feed(self, lines: Sequence[bytes]) -> None:
        """Many lines at once: where no locations are asked for, names are counted in bulk."""
        if self.located:
            for line in lines:
                self.line(line)
            return
        self.lines += len(lines)
        text = b"\n".join([line[:_HEAD] for line in lines if line[:1] == b" "])
        self._kinds.update(_OPS.findall(text))
        if len(self._kinds) > _MOST_KINDS:
            self._kinds = Counter(dict(self._kinds.most_common(_MOST_KINDS)))

    def _counted(self) -> Counter[bytes]:
        return Counter({k: n for k, n in self._kinds.items() if not _STRUCTURE.search(k)})

    @property
    def ops(self) -> int:
        return sum(self._counted().values())

    def kinds(self) -> dict[str, int]:
        return {plain(name): count for name, count in self._counted().most_common(_SHOWN_KINDS)}

    def stage(self, name: str, *, whole: bool) -> ModuleStage:
        if not self.lines:
            return ModuleStage(name)
        return ModuleStage(name, self.ops, self.kinds(), whole)

    def origins(self) -> tuple[tuple[OpPlace, ...], tuple[CodeRef, ...], tuple[Frame, ...]]:
        """Where its operations came from, the rests of functions among that, and the stack of the
        place that most came from."""
        counts: Counter[MlirPlace] = Counter()
        stacks: dict[MlirPlace, list[MlirPlace]] = {}
        resumed: dict[CodeRef, None] = {}
        for text, count in self._used.most_common(_LOCATED):
            places = self.locs.stack(plain(text))
            for place in places:
                code = resumed_code(place)
                if code is not None:
                    resumed[code] = None
            found = _program_place(places)
            if found is not None:
                counts[found] += count
                stacks.setdefault(found, places)
        shown = tuple(
            OpPlace(place.frame(), count, place.resumed_at, place.modules)
            for place, count in counts.most_common(_SHOWN_PLACES)
        )
        return shown, tuple(resumed), _stack(stacks, counts)


def _stack(
    stacks: dict[MlirPlace, list[MlirPlace]], counts: Counter[MlirPlace]
) -> tuple[Frame, ...]:
    for place, _ in counts.most_common(1):
        return collapsed(one.frame() for one in reversed(stacks[place]))
    return ()


def collapsed(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """The program's own; a function and its rest after a break are one frame to its author."""
    kept: list[Frame] = []
    for frame in frames:
        if frame.origin not in ("user", "library"):
            continue
        if kept and (kept[-1].file, kept[-1].function) == (frame.file, frame.function):
            kept[-1] = frame
        else:
            kept.append(frame)
    return tuple(kept)


def goes_on(line: bytes) -> bool:
    """Can a line be one of a module's body?"""
    return (
        not line or line[:1] in b'# }^"%]' or line.startswith((b"module", b"{-#", b"#-}", b"loc("))
    )


def run_body(body: ModuleBody, lines: Sequence[bytes], start: int) -> int:
    """Feed the lines from `start` on that are of the body; the first that is not."""
    at, end = start, len(lines)
    while at < end and lines[at][:1] in _BODY_STARTS:
        at += 1
    if at > start:
        body.feed(lines[start:at])
    return at


# Chosen: bounds for hostile text: time, memory and depth of recursion.
_DEEPEST = 400
_MOST_LOCS = 400_000
_MOST_CALLEES = 16  # A callee is one frame, or the few that a compiler inlined.
_MOST_DIGITS = 9
_TOKEN = re.compile(
    r'(?:(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<ref>#loc\d*)|(?P<word>[A-Za-z_]\w*)|(?P<number>\d{1,9})'
    r"|(?P<sign>[()\[\],:<>]))"
)
_FORMS = re.compile(
    r"(?:callsite\((?P<callee>#loc\d*) at (?P<caller>#loc\d*)\)"
    r'|"(?P<text>[^"\\]*)"(?:\((?P<inner>#loc\d*)\)|:(?P<line>\d{1,9}):\d+)?)$'
)
_LEGACY = re.compile(r"^-?\d+\|")
_LEGACY_FILE = re.compile(r"^(?P<file>.+):(?P<line>-?\d+)$")
_RESUME = re.compile(r"^torch_dynamo_resume_in_.+_at_(?P<line>\d{1,9})$")


class MlirPlace(NamedTuple):
    """One frame of a location."""

    file: str
    line: int
    function: str
    modules: str = ""

    @property
    def resumed_at(self) -> int | None:
        found = _RESUME.match(self.function)
        return int(found["line"]) if found else None

    def frame(self) -> Frame:
        return Frame(
            self.file, self.line, plain_function_name(self.function), origin=origin(self.file)
        )


@dataclass(slots=True)
class _Chain:
    """A frame and its callers; callers are shared."""

    place: MlirPlace
    callers: _Chain | None = None


class Locs:
    """The locations that one module names."""

    def __init__(self) -> None:
        self._texts: dict[bytes, bytes] = {}
        self._known: dict[str, _Chain | None] = {}
        self.python = False
        """Files of Python are among them: XLA_HLO_DEBUG was on."""

    def add(self, line: bytes) -> None:
        """`#loc12 = loc(...)`"""
        if len(self._texts) < _MOST_LOCS:
            name, _, text = line.partition(b" = loc(")
            self._texts[name] = text

    def stack(self, text: str) -> list[MlirPlace]:
        """The frames of a location, innermost first."""
        chain = self._chain(text, 0)
        places: list[MlirPlace] = []
        while chain is not None and len(places) < _DEEPEST:
            places.append(chain.place)
            chain = chain.callers
        return places

    def _chain(self, text: str, depth: int) -> _Chain | None:
        """Of an expression; names are looked up once."""
        text = text.strip()
        if text in self._known:
            return self._known[text]
        if depth > _DEEPEST:
            return None
        if text.startswith("#"):
            self._known[text] = None  # A name that leads to itself leads nowhere.
            inner = self._texts.get(text.encode())
            found = None
            if inner is not None:
                found = self._chain(plain(inner.rstrip()[:-1]), depth + 1)
            self._known[text] = found
            return found
        return self._joined(_simple(text) or _Parser(text).node(0), depth)

    def _joined(self, node: _Node | None, depth: int) -> _Chain | None:
        if node is None or depth > _DEEPEST:
            return None
        if node.kind == "ref":
            return self._chain(node.text, depth + 1)
        if node.kind == "file":
            self.python = self.python or node.text.endswith(".py")
            return _Chain(MlirPlace(node.text, node.line, ""))
        if node.kind == "name":
            return self._named(node, depth)
        if node.kind == "call" and len(node.children) == 2:
            inner = self._joined(node.children[0], depth + 1)
            outer = self._joined(node.children[1], depth + 1)
            return _put_before(inner, outer)
        for child in node.children:
            found = self._joined(child, depth + 1)
            if found is not None:
                return found
        return None

    def _named(self, node: _Node, depth: int) -> _Chain | None:
        if _LEGACY.match(node.text):
            return _legacy(node.text)
        inner = self._joined(node.children[0], depth + 1) if node.children else None
        if inner is not None and not inner.place.function and inner.callers is None:
            return _Chain(inner.place._replace(function=node.text))
        return inner


def _put_before(inner: _Chain | None, outer: _Chain | None) -> _Chain | None:
    if inner is None:
        return outer
    places: list[MlirPlace] = []
    # They are copied, and each location may have the one before it as its callee.
    while inner is not None and len(places) < _MOST_CALLEES:
        places.append(inner.place)
        inner = inner.callers
    for place in reversed(places):
        outer = _Chain(place, outer)
    return outer


def _legacy(text: str) -> _Chain | None:
    """Index, modules, file and first line, function, the operator's line, the operator."""
    parts = text.split("|")
    for at, part in enumerate(parts[1:], 1):
        found = _LEGACY_FILE.match(part)
        if found is None or at + 2 >= len(parts):
            continue
        line = parts[at + 2]
        if not line.isdecimal() or len(line) > _MOST_DIGITS:
            return None
        modules = ".".join(parts[1:at])
        return _Chain(MlirPlace(found["file"], int(line), parts[at + 1], modules))
    return None


@dataclass
class _Node:
    kind: str
    text: str = ""
    line: int = 0
    children: tuple[_Node, ...] = ()


def _simple(text: str) -> _Node | None:
    """The forms that nearly all locations have."""
    found = _FORMS.match(text)
    if found is None:
        return None
    if found["callee"]:
        return _Node(
            "call", children=(_Node("ref", found["callee"]), _Node("ref", found["caller"]))
        )
    if found["line"]:
        return _Node("file", found["text"], int(found["line"]))
    child = (_Node("ref", found["inner"]),) if found["inner"] else ()
    return _Node("name", found["text"], children=child)


class _Parser:
    """Reads one expression; what it does not know it skips."""

    def __init__(self, text: str) -> None:
        self._tokens = [found for found in _TOKEN.finditer(text[:20_000])]
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at][0].strip() if self._at < len(self._tokens) else ""

    def _take(self) -> re.Match[str] | None:
        found = self._tokens[self._at] if self._at < len(self._tokens) else None
        self._at += 1
        return found

    def node(self, depth: int) -> _Node | None:
        token = self._take()
        if token is None or depth > 60:
            return None
        if token["ref"]:
            return _Node("ref", token["ref"])
        if token["string"]:
            return self._string(token["string"][1:-1].replace('\\"', '"'), depth)
        if token["word"] == "callsite":
            return _Node("call", children=self._children(("(", "at", ")"), depth))
        if token["word"] == "fused":
            while self._peek() not in ("[", ""):
                self._take()
            return _Node("fused", children=self._children(("[", ",", "]"), depth))
        return None

    def _string(self, text: str, depth: int) -> _Node:
        if self._peek() == ":":
            self._take()
            number = self._take()
            line = int(number["number"]) if number and number["number"] else 0
            return _Node("file", text, line)
        if self._peek() == "(":
            return _Node("name", text, children=self._children(("(", ",", ")"), depth))
        return _Node("name", text)

    def _children(self, signs: tuple[str, str, str], depth: int) -> tuple[_Node, ...]:
        opening, between, closing = signs
        found: list[_Node] = []
        if self._peek() != opening:
            return ()
        self._take()
        while self._peek() not in (closing, ""):
            node = self.node(depth + 1)
            if node is not None:
                found.append(node)
            while self._peek() not in (between, closing, ""):
                self._take()
            if self._peek() == between:
                self._take()
        self._take()
        return tuple(found)


def _program_place(places: Iterable[MlirPlace]) -> MlirPlace | None:
    """The innermost one in the program's own code."""
    return next((place for place in places if is_program(place.frame())), None)


def resumed_code(place: MlirPlace) -> CodeRef | None:
    """The rest of a function after a break, where the place lies in one."""
    at = place.resumed_at
    if at is None:
        return None
    return CodeRef(place.file, at, plain_function_name(place.function), resumed_at=at)
