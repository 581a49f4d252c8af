"""Where programs are tried: each in a process and a scratch folder of its own, within limits."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from compilescope.minify.answers import Outcome
from compilescope.minify.sandbox import Answer, Sandbox
from compilescope.minify.source.backends import is_eager
from compilescope.minify.source.candidate import SourceCandidate, is_valid, unbound_names
from compilescope.minify.source.causes import Cause
from compilescope.minify.source.crashes import died
from compilescope.minify.source.messages import ORIGINAL_TASK, TASK, Original, Seen, Trial

_WARM = ("compilescope.minify.source.warmth",)
_ENDINGS: dict[str, Outcome] = {
    "timeout": "timeout",
    "memory": "crashed",
    "crashed": "crashed",
    "failed": "crashed",
}


@dataclass(frozen=True)
class Surroundings:
    """What the program finds around itself."""

    paths: tuple[str, ...] = ()
    """Folders with modules of its own that could not be written into it."""
    files: tuple[tuple[str, str], ...] = ()
    """(name in its folder, where it is now) of the files that it names: copies are laid out."""


class Stage:
    """One warm process for all candidates."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        limit_s: float,
        memory_bytes: int | None,
        fork: bool | None = None,
    ) -> None:
        self.surroundings = surroundings
        # A graph that one candidate compiled must not spare another one its crash.
        around = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
        if fork is None:
            # One thread each: candidates are small, and several run at a time.
            around["OMP_NUM_THREADS"] = "1"
        self._sandbox = Sandbox(limit_s, memory_bytes, warm=_WARM, environment=around, fork=fork)

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sandbox.close()

    @property
    def limit_s(self) -> float:
        return self._sandbox.limit_s

    @limit_s.setter
    def limit_s(self, seconds: float) -> None:
        self._sandbox.limit_s = seconds

    def run_original(self, program: Original, limit_s: float) -> Answer:
        """The user's program, in the user's folder."""
        return self._sandbox.run(ORIGINAL_TASK, msgspec.to_builtins(program), limit_s=limit_s)

    def run(self, text: str, *, compiled: bool = True) -> Answer:
        with tempfile.TemporaryDirectory(
            prefix="compilescope-trial-", ignore_cleanup_errors=True
        ) as folder:
            lay_out(self.surroundings.files, Path(folder))
            trial = Trial(text, folder, self.surroundings.paths, compiled)
            return self._sandbox.run(TASK, msgspec.to_builtins(trial))

    def look(self, text: str, *, compiled: bool = True) -> Seen | Outcome:
        """What the program shows, or how it failed to."""
        if not is_valid(text):
            return "invalid"
        return seen_in(self.run(text, compiled=compiled))


def seen_in(answer: Answer) -> Seen | Outcome:
    crash = died(answer.signal) if answer.status == "crashed" and answer.signal else None
    if crash is not None:
        return Seen((crash,), crash.error, crash.title)
    return as_seen(answer.value) if answer.is_done else _ENDINGS[answer.status]


def as_seen(value: Any) -> Seen:
    return msgspec.convert(value, Seen)


def lay_out(files: tuple[tuple[str, str], ...], folder: Path) -> None:
    for name, source in files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(source).is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)


class CauseJudge:
    """Keeps programs that show the same cause and end no worse than the first one did."""

    def __init__(self, stage: Stage, wanted: Cause, allowed_errors: frozenset[str]) -> None:
        self._stage = stage
        self._wanted = wanted
        self._allowed = allowed_errors | {""}
        self.eager_only = False
        """Refuse what would call another backend than "eager": it would take far longer."""
        self.unbound: set[str] = set()
        """Names that nothing binds in the whole program; no others may come."""
        self.recompiles: frozenset[tuple[str, ...]] | None = None
        """Keys of the whole program's recompiles: for a recompile no others may come, or the guard
        that is looked for would be one of several that fail in the same call."""
        self.compiled_only = False
        """Refuse what ends badly without compilation too."""

    def __call__(self, candidate: SourceCandidate) -> Outcome:
        return self.judge(candidate.text())

    def judge(self, text: str) -> Outcome:
        if not is_valid(text) or unbound_names(text) - self.unbound:
            return "invalid"
        if self.eager_only and not is_eager(text):
            return "lost"
        seen = self._stage.look(text)
        if not isinstance(seen, Seen):
            return seen
        if not self.shows(seen):
            return "lost"
        return "kept" if not self.compiled_only or self._ends_well_without(text) else "lost"

    def _ends_well_without(self, text: str) -> bool:
        plain = self._stage.look(text, compiled=False)
        return isinstance(plain, Seen) and not plain.error

    def shows(self, seen: Seen) -> bool:
        if seen.error not in self._allowed or find_cause(seen, self._wanted) is None:
            return False
        others = {cause.key for cause in seen.causes if cause.kind == "recompile"}
        return (
            self._wanted.kind != "recompile"
            or self.recompiles is None
            or (others <= self.recompiles)
        )


def find_cause(seen: Seen, wanted: Cause) -> Cause | None:
    """The cause that is the same as `wanted`."""
    return next((cause for cause in seen.causes if cause.key == wanted.key), None)
