"""The time of regions and graphs by the device's own clock: events between its kernels.

The host runs ahead of a GPU, so its clock tells how long launches took. An event is put into the
device's queue where the host's clock is read; nobody waits for it. What lies between two events is
read when both have passed: now and then, and at the end.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Protocol

from compilescope.base.processes.interruptions import let_through

_MANY = 1024
"""Events of one thread that wait to be read. Chosen: to read them takes some milliseconds."""


class Account(Protocol):
    """Who is charged: a graph, or time outside graphs."""

    device_ns: int


class RegionAccount(Protocol):
    """A region: all of its time, and what was in graphs."""

    device_ns: int
    device_inside_ns: int


class Moments(Protocol):
    """A device that can be asked for the time."""

    def now(self) -> Any | None:
        """None where nothing may be put into its queue."""

    def has_passed(self, moment: Any) -> bool: ...

    def wait(self, moment: Any) -> None: ...

    def between_ns(self, before: Any, after: Any) -> int: ...

    def give_back(self, moment: Any) -> None: ...


class CudaMoments:
    """CUDA's events, on the stream that is current."""

    def __init__(self) -> None:
        self._spare: list[Any] = []

    def now(self) -> Any | None:
        import torch

        # Into a CUDA graph of the program's own nothing of ours must get.
        if torch.cuda.is_current_stream_capturing():
            return None
        event: Any = self._spare.pop() if self._spare else torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def has_passed(self, moment: Any) -> bool:
        return bool(moment.query())

    def wait(self, moment: Any) -> None:
        moment.synchronize()

    def between_ns(self, before: Any, after: Any) -> int:
        return int(before.elapsed_time(after) * 1e6)

    def give_back(self, moment: Any) -> None:
        # An event stays with the device it was first recorded on.
        import torch

        if torch.cuda.device_count() == 1:
            self._spare.append(moment)


def device_moments() -> Moments | None:
    """Of the device that this process uses; None where it uses none."""
    import torch

    cuda = getattr(torch, "cuda", None)
    wanted = ("Event", "is_initialized", "is_current_stream_capturing")
    if cuda is None or not all(hasattr(cuda, name) for name in wanted):
        return None
    return CudaMoments() if cuda.is_initialized() else None


_Mark = tuple[Any, "RegionAccount | None", "Account | None", bool]


class DeviceMarks:
    """The moments of one thread, in order. Each says who is charged with the time up to it."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._marks: deque[_Mark] = deque()
        self._reading = threading.Lock()

    def begin(self) -> None:
        """A region is entered: nobody is charged with what came before."""
        if len(self._marks) > _MANY:
            self.read()
        self._marks.append((self._now(), None, None, False))

    def charge(self, region: RegionAccount, account: Account, inside: bool) -> None:
        self._marks.append((self._now(), region, account, inside))

    def _now(self) -> Any | None:
        try:
            return self._moments.now()
        except Exception as error:  # The border of a hook: a device that failed has no time.
            let_through(error)
            return None

    def read(self, *, wait: bool = False) -> None:
        """Add up what has passed."""
        if not self._reading.acquire(blocking=False):
            return  # Another thread is at it.
        try:
            self._read(wait)
        except Exception as error:  # The border of a hook, as above.
            let_through(error)
            self._marks.clear()
        finally:
            self._reading.release()

    def _read(self, wait: bool) -> None:
        marks, moments = self._marks, self._moments
        while len(marks) > 1:
            before, (after, region, account, inside) = marks[0][0], marks[1]
            if after is not None:
                if wait:
                    moments.wait(after)
                elif not moments.has_passed(after):
                    return
            if region is not None and account is not None and before is not None:
                self._add(before, after, region, account, inside)
            marks.popleft()
            if before is not None:
                moments.give_back(before)

    def _add(
        self, before: Any, after: Any, region: RegionAccount, account: Account, inside: bool
    ) -> None:
        if after is None:
            return
        try:
            ns = self._moments.between_ns(before, after)
        except (RuntimeError, ValueError) as error:
            let_through(error)
            return  # Of two devices: there is no time between them.
        account.device_ns += ns
        region.device_ns += ns
        if inside:
            region.device_inside_ns += ns
