"""The unified diff in a model's reply. All else that the reply says is read by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from compilescope.base.patterns import late
from compilescope.report.llm.replies import CUT_NOTE

_FENCE = late(r"^[ \t]*(?:```|~~~)[ \t]*([\w+-]*)[^\n]*$")
_HEAD = late(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$")
_BARE_HEAD = late(r"^@@(?: .*)?$")


class PatchReply(NamedTuple):
    """What a reply holds."""

    diff: str = ""
    problem: str = ""
    """Why there is no diff, in a clause."""
    declines: bool = False
    """It says that there is no such patch."""


def read_patch(words: str) -> PatchReply:
    """Exactly one diff: of two nobody knows which one is meant."""
    if words.endswith(CUT_NOTE):
        return PatchReply(problem="the reply is too long, or was cut off")
    if words.strip().strip(".`*").upper() == "NONE":
        return PatchReply(problem="the model knows of no patch", declines=True)
    found = [text for text in _fenced(words) if _is_diff(text)] or [
        text for text in [_bare(words)] if _is_diff(text)
    ]
    if not found:
        return PatchReply(problem="the reply holds no unified diff")
    if len(found) > 1:
        return PatchReply(problem="the reply holds several diffs; it is to hold one")
    return PatchReply("".join(f"{line}\n" for line in _recounted(found[0].split("\n"))))


def _fenced(words: str) -> Iterator[str]:
    inside: list[str] | None = None
    for line in words.split("\n"):
        if _FENCE.match(line):
            if inside is not None:
                yield "\n".join(inside)
            inside = [] if inside is None else None
        elif inside is not None:
            inside.append(line)


def _bare(words: str) -> str:
    """Without a fence, from where the diff begins."""
    lines = words.split("\n")
    starts = [
        number for number, line in enumerate(lines) if line.startswith(("--- ", "diff --git "))
    ]
    return "\n".join(lines[starts[0] :]) if starts else ""


def _is_diff(text: str) -> bool:
    lines = text.split("\n")
    names = any(line.startswith("--- ") for line in lines) and any(
        line.startswith("+++ ") for line in lines
    )
    return names or any(line.startswith("diff --git ") for line in lines)


def _recounted(lines: list[str]) -> Iterator[str]:
    """Models miscount: the head of each hunk says how many lines it has, and a line without any
    letter is one of the context. Where the old lines stand is looked for in any case."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    number = 0
    while number < len(lines):
        line = lines[number]
        head = _HEAD.match(line)
        number += 1
        if head is None and not _BARE_HEAD.match(line):
            yield line
            continue
        body: list[str] = []
        while number < len(lines) and not _ends(lines, number):
            body.append(lines[number] or " ")
            number += 1
        old = sum(each[:1] in (" ", "-") for each in body)
        new = sum(each[:1] in (" ", "+") for each in body)
        start = int(head[1]) if head is not None else 1
        yield f"@@ -{start},{old} +{start},{new} @@"
        yield from body


def _ends(lines: list[str], number: int) -> bool:
    """Does another hunk, or another file, begin here?"""
    line = lines[number]
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return line.startswith(("@@", "diff --git ")) or (
        line.startswith("--- ") and following.startswith("+++ ")
    )
