"""From the text of a graph break back to its fields.

Dynamo turns type, context, explanation and hints into one message and drops the fields. We see
them once, when the message is made, and remember them by the message. A message may chain
several causes; the first is the root, the rest are what happened while it was handled.
"""

from __future__ import annotations

import re
import textwrap
from collections import OrderedDict
from functools import lru_cache

import msgspec

from compilescope.base.patterns import late

_CHAIN = late(
    r"\n\n\*\*\* While handling this graph break, another graph break occurred: \*\*\*\n\n"
)
_UNTYPED = late(r"Could not (?:guard on|extract \w+ \w+ from) data-dependent expression")
_LINK = late(r"gb/gb(\d+)\.html")
_EXPLANATION = late(r"^  Explanation: (.*?)(?=^  Hint: |^\s*$|\Z)", re.M | re.S)
_HINT = late(r"^  Hint: (.*?)(?=^  Hint: |^\s*$|\Z)", re.M | re.S)
_CONTEXT = late(r"^  Developer debug context: (.*?)(?=^\s*$|\Z)", re.M | re.S)
_SHORT = 4_000
"""Letters of a message that is worth keeping: nearly all, and 512 of them are 2 MB."""
_REMEMBERED = 512
"""Messages. Chosen: Dynamo makes a message shortly before it raises it, so few are needed at a
time."""


class BreakFields(msgspec.Struct, frozen=True):
    """What PyTorch says of one cause."""

    gb_type: str
    gb_id: str | None = None
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""


class BreakTexts(msgspec.Struct):
    """Messages made lately, and the fields they were made from."""

    _fields: OrderedDict[str, BreakFields] = msgspec.field(default_factory=OrderedDict)
    latest: BreakFields | None = None
    """The last one made: where an exception is swallowed, all that is left of it."""

    def remember(self, message: str, fields: BreakFields) -> None:
        self._fields[message] = fields
        self._fields.move_to_end(message)
        self.latest = fields
        while len(self._fields) > _REMEMBERED:
            self._fields.popitem(last=False)

    def root_and_wrappers(self, message: str) -> tuple[BreakFields, tuple[str, ...]]:
        """The root cause in `message`, and the types of the wrappers around it."""
        links = [self._fields.get(part) or parse_message(part) for part in _CHAIN.split(message)]
        return links[0], tuple(link.gb_type for link in links[1:])


def is_untyped(message: str) -> bool:
    """Is it one of the errors that PyTorch raises without a graph-break type?"""
    return _UNTYPED.search(message) is not None


def parse_message(message: str) -> BreakFields:
    """What can be read from a message that was not seen in the making."""
    return _parse_again(message) if len(message) <= _SHORT else _parse(message)


def _parse(message: str) -> BreakFields:
    untyped = _UNTYPED.search(message)
    if untyped:
        return BreakFields(untyped.group(0), explanation=message.split("\n\n")[0])
    lines = message.splitlines() or [""]
    body = "\n".join(lines[1:])
    explanation = _EXPLANATION.search(body)
    hints = _HINT.findall(body)
    context = _CONTEXT.search(body)
    link = _LINK.search(body)
    return BreakFields(
        gb_type=lines[0].strip()[:200],
        gb_id=f"GB{link.group(1)}" if link else None,
        explanation=_even(explanation.group(1)) if explanation else body.strip()[:2000],
        hints=tuple(_even(hint) for hint in hints),
        context=_even(context.group(1)) if context else "",
    )


_parse_again = lru_cache(_REMEMBERED)(_parse)
"""Most breaks of a log are repetitions of a few."""


def _even(text: str) -> str:
    return textwrap.dedent(text).strip()
