"""A long trial with many inputs: what it has seen, how far it has come, and how to see it again."""

from __future__ import annotations

import collections
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from subjects.limited import Clock, Outcome


class Campaign:
    """Counts inputs, commands and troubles; prints each trouble when it is new."""

    def __init__(self, what: str, total: int, keep: Path | None) -> None:
        self._what = what
        self._keep = keep
        self._clock = Clock(total)
        self._seen: collections.Counter[str] = collections.Counter()
        self._statuses: collections.Counter[int] = collections.Counter()
        self.commands: collections.Counter[str] = collections.Counter()
        self.bad: set[int] = set()
        self.done = 0
        self.seconds = self.most_s = self.most_mb = 0.0

    def note(
        self, number: int, name: str, outcome: Outcome, allowed: Iterable[int], again: str
    ) -> bool:
        """True where something is wrong with it. `again`: the command that repeats it."""
        self.commands[name] += 1
        self._statuses[outcome.status] += 1
        self.seconds += outcome.seconds
        self.most_s = max(self.most_s, outcome.seconds)
        self.most_mb = max(self.most_mb, outcome.megabytes)
        problems = outcome.problems()
        if not problems and outcome.status not in set(allowed):
            problems = [f"exit status {outcome.status}\n{outcome.output[-1000:]}"]
        for problem in problems:
            self._tell(number, name, problem, again)
        return bool(problems)

    def differs(self, number: int, name: str, words: str, again: str) -> None:
        self._tell(number, name, f"a fresh process does otherwise: {words}", again)

    def _tell(self, number: int, name: str, problem: str, again: str) -> None:
        self.bad.add(number)
        place = problem.strip().rpartition("  File ")[2] or name
        place = place.splitlines()[0] if "  File " in problem else f"{name}: {problem[:60]}"
        self._seen[place] += 1
        if self._seen[place] == 1:
            print(f"\n{self._what} {number}: {name}\n{problem}\n  again: {again}", flush=True)

    def kept(self, name: str, source: Path) -> Path:
        """A copy of an input with which something went wrong."""
        if self._keep is None:
            self._keep = Path(tempfile.mkdtemp(prefix="mutated-kept-"))
        self._keep.mkdir(parents=True, exist_ok=True)
        target = self._keep / name
        if not target.exists():
            subprocess.run(["cp", "-a", source, target], check=True)
        return target

    def go(self, batches: Iterable[Sequence[int]], act: Callable[[Sequence[int]], None]) -> int:
        """Some numbers at a time; Ctrl-C or SIGTERM ends it with what was seen so far."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.default_int_handler)
        try:
            for numbers in batches:
                act(numbers)
                self.done += len(numbers)
                line = self._clock.line(self.done)
                if line is not None:
                    print(f"{line}; bad so far: {len(self.bad)}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        finally:
            self._sum_up()
        return 1 if self.bad else 0

    def _sum_up(self) -> None:
        total = sum(self.commands.values())
        print(
            f"{self.done:,} {self._what}s, {total:,} commands: {len(self.bad)} bad; "
            f"most: {self.most_s:.1f} s of CPU, {self.most_mb:.0f} MB; {self.seconds:.0f} s in all"
        )
        print("statuses:", dict(sorted(self._statuses.items())))
        for name, times in sorted(self.commands.items()):
            print(f"  {times:6,}  {name}")
        for place, times in self._seen.most_common():
            print(f"  {times:6,}  TROUBLE {place}")
        sys.stdout.flush()
