"""The GPUs of this machine, lent to jobs."""

from __future__ import annotations

from collections.abc import Mapping


class Devices:
    """A job has whole ones to itself; jobs that ask for parts of one share it."""

    def __init__(self, count: int, environment: Mapping[str, str]) -> None:
        named = environment.get("CUDA_VISIBLE_DEVICES")
        known = [str(index) for index in range(count)]
        visible = known if named is None else [each.strip() for each in named.split(",")]
        self._used = {name: 0.0 for name in visible[:count] if name}

    @property
    def count(self) -> int:
        return len(self._used)

    def take(self, gpus: float) -> tuple[str, ...] | None:
        """None: not as many are free now."""
        share = min(gpus, 1.0)
        number = max(1, round(gpus)) if gpus > 0 else 0
        free = [name for name, used in self._used.items() if used + share <= 1.0 + 1e-9]
        if len(free) < number:
            return None
        # The fullest that still has room, so that whole ones stay free.
        taken = sorted(free, key=lambda name: -self._used[name])[:number]
        for name in taken:
            self._used[name] += share
        return tuple(taken)

    def give_back(self, names: tuple[str, ...], gpus: float) -> None:
        for name in names:
            self._used[name] = max(0.0, self._used[name] - min(gpus, 1.0))
