"""A patch: what one fix would change, and what a user could see change with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Allowance = Literal[
    "drops-output",
    "moves-output",
    "exception-type",
    "fewer-errors",
    "other-random-numbers",
    "rebuilt-attributes",
]
"""A difference that a patch states, so that the verifier does not hold it against it.

`drops-output`: lines on stdout, stderr or in logs are missing. `moves-output`: they come in another
order. `exception-type`: where the original raises, the patched one raises too, but maybe another
class. `fewer-errors`: it may return where the original raises. `other-random-numbers`: values drawn
at random differ, their distribution does not. `rebuilt-attributes`: an attribute gets a tensor of
its own where it shared another's, and a call may make attributes that the original makes in another
call.
"""


class Patch(msgspec.Struct, frozen=True):
    """New texts for files of the program."""

    files: Mapping[str, str]
    """By absolute path: the whole new text."""
    states: str = ""
    """What a user could see change, in one sentence; empty where nothing does."""
    allows: frozenset[Allowance] = frozenset()
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables that the program is to be started with."""
    needs_human: str = ""
    """What a person has to fill in or decide; such a patch is never called verified."""

    @property
    def safe(self) -> bool:
        """The same observable behaviour."""
        return not self.states and not self.needs_human
