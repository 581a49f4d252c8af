"""Lines of a console: what is cleaned off them, and what their beginnings tell.

Everything is bytes: a log of gigabytes is mostly lines that nobody decodes.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_ANSI = re.compile(rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])")

_WINDOW = 1 << 18
"""Bytes. Chosen: it bounds memory."""

_COLLECTED = re.compile(
    rb"^(?:(?P<pod>\[pod/[^\]\s]{1,300}\] )|[^\t\n]{1,200}\t[^\t\n]{1,200}\t)?"
    rb"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)"
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,100} [^\s\[]{1,100}\[\d{1,10}\]:)(?: |$)",
    re.M,
)
"""A time that whoever collected the log put before each line: GitHub (also `gh run view --log`),
`docker logs -t`, `kubectl logs --timestamps`, journalctl."""
_COLLECTED_WITHIN = 4096
"""Bytes. Chosen: a collector puts its mark before each line, so the first ones show it."""

_TAG = (
    rb"(?:\[rank\d{1,9}\]: ?"  # torch, in a distributed run
    rb"|\[\d{1,9},\d{1,9}\](?:<\w{1,20}>)?: ?"  # mpirun --tag-output
    rb"|\[(?!rank\d)[A-Za-z_]{1,40}\d{1,9}\]: ?"  # torchrun --tee: [default0]:
    rb"|\[pod/[^\]\s]{1,300}\] "  # kubectl logs --prefix
    rb"|\((?:[\w./:-]{1,80} )?(?:[\w-]{1,40}=[^\s,()]{1,80},? )*pid=\d{1,10}[^()\n]{0,80}\) ?)"
)
TAGS = re.compile(rb"(?:" + _TAG + rb")+")
NUMBERED = re.compile(rb" {0,4}(\d{1,6}): ")
"""srun --label."""

_STAMP = (
    rb"(?P<level>[VIWEC])(?P<date>\d{4}) (?P<time>\d\d:\d\d:\d\d\.\d{6}) (?P<pid>\d{1,10}) "
    rb"(?P<where>[^\s\]]{1,300}:\d{1,7})\]"
)
TORCH = re.compile(
    rb"(?P<tags>(?: {0,4}\d{1,6}: )?(?:"
    + _TAG
    + rb"){0,8})"
    + _STAMP
    + rb"(?: \[(?P<id>!?\d{1,9}(?:/\d{1,9}){0,2}"
    rb"(?:_\d{1,9})?)\])?(?: \[__(?P<artifact>\w{1,60})\])?(?: |$)"
)
"""torch's own prefix (torch 2.3 and later), which every line of a record carries."""
INNER_TORCH = re.compile(
    rb"(?:\[rank\d{1,9}\]:)?[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d{1,10} \S{1,300}\.py:\d{1,7}\] "
)
"""The same after something that a program printed without a newline."""

_RANK_IN_TAG = re.compile(
    rb"^ {0,4}(\d{1,6}): |"
    rb"\[rank(\d{1,9})\]|\[\d{1,9},(\d{1,9})\]|\[[A-Za-z_]{1,40}(\d{1,9})\]:|\brank=(\d{1,9})"
)
_PID_IN_TAG = re.compile(rb"\bpid=(\d{1,10})")
_TORCH_TAG = re.compile(rb"\[rank\d{1,9}\]: ?")


class Tag(NamedTuple):
    """Who wrote a line, as far as its tags tell."""

    text: bytes
    """Without the one that torch itself puts there: torch does so on its own lines only."""
    rank: int | None = None
    pid: int | None = None


UNTAGGED = Tag(b"")


def read_tags(text: bytes) -> Tag:
    """The tags at the beginning of a line, all of them."""
    rank = _RANK_IN_TAG.search(text)
    pid = _PID_IN_TAG.search(text)
    number = next((group for group in rank.groups() if group), None) if rank else None
    return Tag(
        _TORCH_TAG.sub(b"", text).strip(),
        int(number) if number else None,
        int(pid[1]) if pid else None,
    )


def cleaned(block: bytes) -> bytes:
    """Without colours, carriage returns, null bytes and times that a collector put there. A bare
    return begins a line: what a progress bar draws over itself."""
    block = block.removeprefix(codecs.BOM_UTF8)
    if b"\0" in block:
        block = block.replace(b"\0", b"")
    if b"\x1b" in block:
        block = _without_colours(block)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _COLLECTED.search(block, 0, _COLLECTED_WITHIN):
        block = _COLLECTED.sub(lambda found: found["pod"] or b"", block)
    return block


def _without_colours(block: bytes) -> bytes:
    """Piece by piece: millions of escapes at once would take hundreds of megabytes."""
    parts: list[bytes] = []
    at = 0
    while at < len(block):
        end = at + _WINDOW
        if end < len(block):
            # A piece ends before an escape, never within one.
            end = max(block.rfind(b"\x1b", at + 1, end), 0) or end
        parts.append(_ANSI.sub(b"", block[at:end]))
        at = end
    return b"".join(parts)


def plain(line: bytes) -> str:
    return line.decode("utf-8", "replace")
