"""One module's text: operations are counted and their locations, and no line is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from compilescope.logs.text.lines import plain
from compilescope.logs.text.mlir.locs import Locs, MlirPlace, program_place, resumed_code
from compilescope.model.logged import ModuleStage, OpPlace
from compilescope.model.stack import CodeRef, Frame

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
_MOST_LOCS = 200_000
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
            if end is not None and (len(self._used) < _MOST_LOCS or end[1] in self._used):
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
            found = program_place(places)
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
