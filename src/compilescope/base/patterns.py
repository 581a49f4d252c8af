"""Regular expressions that are compiled when they are first used.

Compiling takes longer than importing the module around it, and a command uses few of those that
its modules have. Compiled at import, `show` of a log took 17 ms more (332 ms of CPU instead of
315), `explain` 22 ms, `logs` 11 ms, `list` 5 ms (medians of 9 runs by turns).
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Late:
    """As a compiled pattern is. What was asked for once is found without coming here again."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(self.pattern, self._flags), name)
        self.__dict__[name] = found
        return found


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Not for one that is compared with `match.re`: that is the pattern itself."""
    return cast("re.Pattern[AnyStr]", _Late(pattern, flags))
