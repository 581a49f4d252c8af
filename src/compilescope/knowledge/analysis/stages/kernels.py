"""Reads Inductor's output code: the kernels, who calls them, and what torch says they compute.

Imports, size checks, frees and the benchmark at the end are left out, and counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

import msgspec

from compilescope.base.patterns import late
from compilescope.record.graph import KernelCall

_LONGEST_KERNEL = 200
"""Lines of one kernel that are shown. Chosen: more than people read; a note says how many are left
out."""
_DEFINITION = late(r"(\w+) = async_compile\.(\w+)\(")
_FUNCTION = late(r"\s*def (\w+)\((?:self, )?args\):")
_AOT_ID = late(r"# AOT ID: \[?'?\w*?(forward|backward|inference)")
_SOURCES = late(r"#(?=(?P<head>.*?Source Nodes: \[))(?P=head)(?P<names>[^\]\n]*)\]")
_FRAGMENT = late(r"#\s+%(\w+) :.* = call_function\[")
_CALLEE = late(r"(?:[\w, \[\]]+ = )?([A-Za-z_][\w.]*)\(")
_NOISE = (
    ("assert_size_stride(", "size checks"),
    ("assert_alignment(", "size checks"),
    ("del ", "frees"),
    ("args.clear()", "frees"),
)
_HOUSEKEEPING = tuple(start for start, _ in _NOISE)
_EXTERN = ("extern_kernels.", "torch.ops.", "aten.")


class KernelBlock(msgspec.Struct, frozen=True):
    """A kernel's definition or one call of it."""

    kernel: str
    nodes: tuple[str, ...] = ()
    """Of the post-grad graph."""
    sources: tuple[str, ...] = ()
    """Names in torch's comment: nodes of Dynamo's graph, or of the backward graph itself."""


class KernelLine(msgspec.Struct, frozen=True, gc=False):
    """A line to show."""

    text: str
    block: int | None = None


class OutputCode(msgspec.Struct):
    """Inductor's code for one graph."""

    lines: list[KernelLine] = msgspec.field(default_factory=list)
    blocks: list[KernelBlock] = msgspec.field(default_factory=list)
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    """What was left out -> how many lines."""


def direction_of(text: str) -> str:
    found = _AOT_ID.match(text)
    return found[1] if found else ""


def read_output_code(text: str, calls: Iterable[KernelCall] = ()) -> OutputCode:
    """`calls` is what was noted while the code was written; a cached graph has none."""
    reader = _KernelReader(text, calls)
    reader.read_all()
    reader.code.lines += reader.definitions
    if not reader.code.blocks:
        # Not the wrapper we know (C++, or another backend's): all of it, as it stands.
        reader.code.lines = [KernelLine(line) for line in text.splitlines()]
        reader.code.left_out.clear()
    return reader.code


class _KernelReader:
    def __init__(self, text: str, calls: Iterable[KernelCall]) -> None:
        self.code = OutputCode()
        self._lines = text.splitlines()
        self._ends = [n for n, line in enumerate(self._lines) if line.startswith("'''")]
        """Where texts of kernels end."""
        self._calls: dict[str, list[KernelCall]] = {}
        for call in calls:
            self._calls.setdefault(call.kernel, []).append(call)
        self._defined: dict[str, KernelBlock] = {}
        self._turn: Counter[str] = Counter()
        self._at = 0
        self.definitions: list[KernelLine] = []
        """Shown after the functions that call them: those are short, and tell the order."""

    def read_all(self) -> None:
        comments: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            # Few lines are: of the others no expression is asked.
            definition = _DEFINITION.match(line) if "async_compile." in line else None
            if definition is not None:
                self._read_definition(definition[1], definition[2], comments)
            elif "args):" in line and _FUNCTION.match(line):
                self._read_function(line)
            elif line.startswith("#"):
                comments.append(line)
                self._at += 1
                continue
            else:
                self._at += 1
                if line.strip():
                    self.code.left_out["imports and helpers"] += 1
            comments = []

    def _read_definition(self, kernel: str, kind: str, comments: list[str]) -> None:
        noted = [name for call in self._calls.get(kernel, ()) for name in call.nodes]
        found = [match[1] for line in comments if (match := _FRAGMENT.match(line))]
        block = KernelBlock(kernel, tuple(dict.fromkeys(noted or found)), _sources(comments))
        self._defined[kernel] = block
        self.code.blocks.append(block)
        number = len(self.code.blocks) - 1
        body = [line for line in comments if _SOURCES.match(line)]
        self._leave_out("torch's own comments", len(comments) - len(body))
        body += self._definition_lines(kind)
        self.definitions += [KernelLine(line, number) for line in body[:_LONGEST_KERNEL]]
        if len(body) > _LONGEST_KERNEL:
            rest = len(body) - _LONGEST_KERNEL
            self._leave_out("ends of long kernels", rest)
            self.definitions.append(KernelLine(f"⋯ {rest} more lines", number))

    def _leave_out(self, what: str, lines: int) -> None:
        if lines:
            self.code.left_out[what] += lines

    def _definition_lines(self, kind: str) -> list[str]:
        first = self._lines[self._at]
        self._at += 1
        if first.count("'''") != 1:
            return [first]
        at = bisect_left(self._ends, self._at)
        end = self._ends[at] if at < len(self._ends) else len(self._lines)
        inside = list(filter(str.strip, self._lines[self._at : end]))
        last = self._lines[end : end + 1]
        self._at = end + len(last)
        shown = inside
        if kind == "triton":
            start = next((n for n, line in enumerate(inside) if line.startswith("@triton.jit")), 0)
            shown = inside[start:]
        shown = [line for line in shown if not line.startswith("#include")]
        self._leave_out("imports and helpers", len(inside) - len(shown))
        return [first, *shown, *last]

    def _read_function(self, header: str) -> None:
        """A function that calls kernels: all of it that is no housekeeping."""
        depth = len(header) - len(header.lstrip())
        self.code.lines.append(KernelLine(header.strip()))
        self._at += 1
        said: int | None = None
        while self._at < len(self._lines):
            line = self._lines[self._at]
            bare = line.strip()
            if bare and len(line) - len(line.lstrip()) <= depth:
                return
            self._at += 1
            if bare.startswith(_HOUSEKEEPING):
                noise = next(name for start, name in _NOISE if bare.startswith(start))
                self.code.left_out[noise] += 1
            elif bare.startswith("#") and _SOURCES.match(bare):
                said = len(self.code.lines)
                self.code.lines.append(KernelLine(line[depth:]))
            elif bare and self._read_call(line[depth:], said):
                said = None

    def _read_call(self, line: str, said: int | None) -> bool:
        """True where the line calls a kernel. Others may stand between it and its comment."""
        lines = self.code.lines
        comment = lines[said].text.strip() if said is not None else ""
        block = self._called(line.strip(), comment)
        if block is None:
            lines.append(KernelLine(line))
            return False
        self.code.blocks.append(block)
        number = len(self.code.blocks) - 1
        lines.append(KernelLine(line, number))
        if said is not None:
            lines[said] = KernelLine(lines[said].text, number)
        return True

    def _called(self, bare: str, comment: str) -> KernelBlock | None:
        found = _CALLEE.match(bare)
        callee = found[1] if found else ""
        kernel = callee.removesuffix(".run")
        if kernel not in self._defined and not callee.startswith(_EXTERN):
            return None
        noted = self._calls.get(kernel, [])
        turn = self._turn[kernel]
        self._turn[kernel] += 1
        if turn < len(noted):
            return KernelBlock(kernel, noted[turn].nodes)
        sources = _sources([comment])
        defined = self._defined.get(kernel)
        if defined is not None and not sources:
            return defined
        return KernelBlock(kernel, (), sources)


def _sources(comments: Iterable[str]) -> tuple[str, ...]:
    names = [
        name.strip()
        for line in comments
        if (found := _SOURCES.match(line))
        for name in found["names"].split(",")
    ]
    return tuple(dict.fromkeys(name for name in names if name))
