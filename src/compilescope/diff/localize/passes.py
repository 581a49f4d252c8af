"""Which pass of a backend is responsible, for any backend that names its passes.

Such a backend has `passes`, their names in the order in which they run, and `without(names)`, which
gives the same backend without those. Adapters may have them (docs/guides/adapter.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from compilescope.torchapi.inductor.blame import Blame, Good, TooManyTrials, Trials

_MOST_TRIALS = 64
"""Chosen: enough for 30 passes, each left out once and put back once."""
RIGHT_ALONE = "right when compiled by itself, with all passes"


@runtime_checkable
class HasPasses(Protocol):
    """A backend that can leave passes out."""

    @property
    def passes(self) -> Sequence[str]: ...

    def without(self, names: Sequence[str]) -> Callable[..., Any]: ...


def has_passes(backend: object) -> bool:
    try:
        return isinstance(backend, HasPasses) and bool(tuple(backend.passes))
    except Exception:  # The border to a plugin: a library that can't be loaded, for one.
        return False


def find_pass(good: Good, backend: HasPasses, *, limit_s: float) -> Blame:
    """Each trial compiles the part once. A pass is named only if the part is wrong with all passes
    and right without that one."""
    search = _PassSearch(good, backend, limit_s)
    try:
        name, words = search.run()
    except TooManyTrials as error:
        name, words = None, str(error)
    except Exception as error:  # The border to a plugin.
        said = " ".join(str(error).split())[:200]
        name, words = None, f"leaving out passes failed: {type(error).__name__}: {said}"
    return Blame(name, words, search.trials.count)


class _PassSearch:
    def __init__(self, good: Good, backend: HasPasses, limit_s: float) -> None:
        self.trials = Trials(good, limit_s, _MOST_TRIALS)
        self._backend = backend
        self._passes = tuple(backend.passes)

    def run(self) -> tuple[str | None, str]:
        if self._right_without([]):
            return None, RIGHT_ALONE
        if not self._right_without(self._passes):
            return None, "it is wrong even without any of the backend's passes"
        found = [name for name in self._passes if self._right_without([name])]
        if len(found) == 1:
            [name] = found
            return name, f"right without the pass {name}, wrong with all of them"
        if found:
            among = ", ".join(found)
            for name in self._turning(found):
                return name, (
                    f"right without any one of {among}; added in order, the passes before "
                    f"{name} leave it right and {name} makes it wrong"
                )
            return None, f"right without any one of the passes {among}"
        return None, f"right only without the passes {' and '.join(self._needed())} together"

    def _turning(self, found: list[str]) -> list[str]:
        """Where several must all run for it to go wrong: the one with which it turns wrong, when
        the passes are added in the order in which they run."""
        return [
            name
            for name in found
            if self._right_without(self._passes[self._passes.index(name) :])
            and not self._right_without(self._passes[self._passes.index(name) + 1 :])
        ]

    def _needed(self) -> list[str]:
        """The fewest that have to be left out, found by putting back one after the other."""
        out = list(self._passes)
        for name in self._passes:
            fewer = [other for other in out if other != name]
            if self._right_without(fewer):
                out = fewer
        return out

    def _right_without(self, names: Sequence[str]) -> bool:
        return self.trials.go_right(self._backend.without(list(names)))
