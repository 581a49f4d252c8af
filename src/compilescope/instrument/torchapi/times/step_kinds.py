"""Which calls of compiled code begin a step. A loop that trains and one that evaluates may call the
same region: calls are of one kind where they come from the same lines, in the same grad mode.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import deque
from collections.abc import Callable, Hashable

from compilescope.instrument.torchapi.stacks import call_site
from compilescope.record.stack import CodeRef

_MOST_GAPS = 16
"""Of a kind, the last ones. Chosen: enough for a median."""
_MOST_KINDS = 256
"""Chosen: a bound, for a program that calls from ever new places."""
_MOST_NOTED = 1024
"""Calls, the last ones. Chosen: a step of a model whose blocks are compiled apart has fewer."""
_NEAR = 0.8
"""Of the longest time: kinds that take so much belong to the same steps. Chosen: their times differ
by what the clock is off."""


_LEAST_OTHERS, _LONGER = 8, 4
"""Calls of others, and times that they take what the kind has taken so far, after which its loop is
over. Chosen: a loop that warms up hands over soon; one that evaluates in between is shorter."""


class CountedRegion:
    """A compiled region, and how often it was called from outside of all others."""

    def __init__(self) -> None:
        self.calls = 0
        self.ref: CodeRef | None = None


class CallKind:
    """Calls of a region from the same lines."""

    def __init__(self, region: CountedRegion) -> None:
        self.region = region
        self.calls = 0
        self._last: int | None = None
        self._others = 0
        """Calls of other kinds since."""
        self._gaps: deque[int] = deque(maxlen=_MOST_GAPS)

    def note(self, now: int) -> None:
        self.calls += 1
        if self._last is not None:
            self._gaps.append(now - self._last)
        self._last = now
        self._others = 0

    def is_over(self, now: int) -> bool:
        """Asked at each call of another kind that is not of its steps."""
        self._others += 1
        since = now - (self._last or now)
        return self._others >= _LEAST_OTHERS and since > _LONGER * self.spent_ns

    @property
    def spent_ns(self) -> int:
        """From call to call, as it usually is: other work between two loops does not count."""
        return statistics.median_low(self._gaps) * self.calls if self._gaps else 0


class CallKinds:
    """Those of a process, since something was compiled last."""

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._kinds: dict[Hashable, CallKind] = {}
        self._noted: deque[CallKind] = deque(maxlen=_MOST_NOTED)

    def note(self, region: CountedRegion, grad: bool) -> CallKind:
        key = (id(region), grad, call_site())
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            kind = self._kinds[key] = CallKind(region)
        kind.note(self._clock())
        self._noted.append(kind)
        return kind

    def forget(self) -> None:
        self._kinds.clear()
        self._noted.clear()

    def step(self, calls: int) -> CallKind | None:
        """The kind in whose steps the program spends most, of those with more calls; where several
        are of the same steps, the one that is called least often begins them."""
        known = [kind for kind in self._kinds.values() if kind.calls > calls]
        most = max((kind.spent_ns for kind in known), default=0)
        near = [kind for kind in known if kind.spent_ns >= _NEAR * most]
        return min(near, key=lambda kind: kind.calls, default=None)

    def between(self, kind: CallKind) -> set[CallKind]:
        """What else was called in the last step that begins with this kind."""
        noted = itertools.dropwhile(lambda each: each is not kind, reversed(self._noted))
        next(noted, None)
        return set(itertools.takewhile(lambda each: each is not kind, noted))
