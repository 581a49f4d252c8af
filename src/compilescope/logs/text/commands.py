"""The command that started a program, where its log begins with it: `set -x`, a pasted prompt."""

from __future__ import annotations

import re

from compilescope.logs.text.lines import plain

_HEAD = 1 << 16
"""Bytes of a log in which its command is looked for. Chosen: it stands at the beginning."""
_COMMAND = re.compile(
    rb"^(?:\+{1,4}|\$|[^\s$#]{1,80}@[^\s$#]{1,80}[^$#\n]{0,200}[$#]"
    rb"|\([\w.-]{1,40}\) [^$#\n]{0,200}[$#])"
    rb"[ \t]+(?P<command>(?:[A-Za-z_]\w{0,80}=\S*[ \t]+)*"
    rb"(?:env[ \t]+(?:[A-Za-z_]\w{0,80}=\S*[ \t]+)*)?"
    rb"(?:[^\s;|&]{0,300}/)?(?:python[\d.]*|torchrun|pytest|accelerate|mpirun|srun)"
    rb"[ \t]+[^\n]{1,1000})$",
    re.M,
)
_OUTPUT = re.compile(r"(?<!\s)\s*(?:\d?>>?|&>>?|\|).*")


def command_in(head: bytes) -> str:
    """As it was typed, without what it does with its output; empty where the log has none."""
    found = _COMMAND.search(head[:_HEAD])
    return _OUTPUT.sub("", plain(found["command"]).strip()) if found is not None else ""
