"""The blocks of PT_XLA_DEBUG_LEVEL: a graph is compiled, or executed, and who asked for it."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from compilescope.base.texts import whole_number
from compilescope.logs.text.dynamo.frames import recast
from compilescope.logs.text.lines import plain
from compilescope.logs.words.tracebacks import make_frame
from compilescope.record.stack import Frame

PREFIX = re.compile(
    rb"(?P<kind>Unexpected Execution|Post Compilation|Compilation|Execution) Analysis: ?"
    rb"(?P<rest>.*)"
)
_RULE = re.compile(rb"^(?P<sign>[=-])(?P=sign){20,}\s*$")
FRAME = re.compile(r"^\s*(?P<name>\S.{0,300}?) \((?P<file>.{1,1000}):(?P<line>\d{1,9})\)\s*$")
_OLD_CAUSE = re.compile(r"^(?:execution|compilation) is caused by (?P<cause>.+)$")


@dataclass
class XlaBlock:
    """One block as far as it was read."""

    kind: str
    cause: str = ""
    hash: str = ""
    name: str = ""
    inputs: int | None = None
    outputs: int | None = None
    frames: list[Frame] = field(default_factory=list)
    """Innermost first, as the log has them."""
    section: str = ""

    @functools.cached_property
    def stack(self) -> tuple[Frame, ...]:
        """Outermost first."""
        return recast(reversed(self.frames))


def is_rule(rest: bytes) -> str:
    """`=` or `-` where a line is a ruled one."""
    sign = rest[:1]
    if sign not in (b"=", b"-") or _RULE.match(rest) is None:
        return ""
    return sign.decode()


def read_block(kind: str, lines: list[bytes]) -> XlaBlock:
    """A whole block, without its ruled lines."""
    block = XlaBlock(kind)
    for line in lines:
        _take_text(block, plain(line))
    return block


def _take_text(block: XlaBlock, text: str) -> None:
    word = text.strip()
    if word in ("Compilation Cause", "Execution Cause"):
        block.section = "cause"
    elif word == "Graph Info:":
        block.section = "graph"
    elif word.lower().startswith("python frame triggered"):
        block.section = "frames"
    elif word.startswith("Graph Hash:"):
        block.hash = word.partition(":")[2].strip()
    elif word.startswith("Graph Name:"):
        block.name = word.partition(":")[2].strip()
    elif word.startswith("Number of Graph Inputs:"):
        block.inputs = _number(word)
    elif word.startswith("Number of Graph Outputs:"):
        block.outputs = _number(word)
    elif block.section == "frames":
        _take_frame(block, word)
    elif old := _OLD_CAUSE.match(word):
        block.cause = old["cause"].strip()
    elif block.section == "cause" and word and not block.cause:
        block.cause = word


def _take_frame(block: XlaBlock, word: str) -> None:
    if (found := FRAME.match(word)) and len(block.frames) < 1000:
        block.frames.append(make_frame(found["file"], int(found["line"]), found["name"]))


def _number(text: str) -> int | None:
    value = text.partition(":")[2].strip()
    return whole_number(value)
