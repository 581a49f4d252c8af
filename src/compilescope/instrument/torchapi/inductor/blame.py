"""Which part of Inductor is responsible: a backend before it, a pass, a lowering, or a setting.

torch's own CompilerBisector is asked first (torch 2.7 has it). It knows no fusion and no code
generation: these are tried by settings that switch them off.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Good = Callable[[Callable[..., Any]], bool]
"""Compiles the part with the given backend, runs it, and says whether it goes right."""
_MOST_TRIALS = 48
"""Chosen: the bisector takes about 2 log2(n) for n lowerings, and some for each of its dozen
subsystems."""
_SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("kernel fusion", {"max_fusion_size": 1, "epilogue_fusion": False}),
    ("vectorized code", {"cpp.simdlen": 1}),
    ("contracted floating point", {"cpp.enable_floating_point_contract_flag": "off"}),
    ("unsafe math optimizations", {"cpp.enable_unsafe_math_opt_flag": False}),
    ("pattern matching", {"pattern_matcher": False}),
)


@dataclass(frozen=True)
class Blame:
    """Who it is."""

    name: str | None
    """`lowerings: ...`, `post_grad_passes: ...`; None: not found."""
    words: str
    trials: int


class TooManyTrials(Exception):
    """The limit of trials or time was reached."""


def find_blame(good: Good, *, limit_s: float) -> Blame:
    """Each trial compiles once. What it prints goes nowhere, what it sets is set back."""
    trials = Trials(good, limit_s)
    try:
        found = _bisected(trials)
        if found is None or found[0] is None or found[0].startswith("lowerings"):
            setting = _by_settings(trials)
            if setting is not None:
                return Blame(setting, _of_both(setting, found), trials.count)
        if found is None:
            return Blame(None, "this torch has no CompilerBisector", trials.count)
        return Blame(*found, trials.count)
    except TooManyTrials as error:
        return Blame(None, str(error), trials.count)
    except Exception as error:  # The border to torch: the bisector is a tool for debugging.
        words = " ".join(str(error).split())[:200]
        return Blame(None, f"torch's bisector: {type(error).__name__}: {words}", trials.count)


def _of_both(setting: str, found: tuple[str | None, str] | None) -> str:
    words = f"with {setting} off, it is right"
    return f"{words}; and {found[1]}" if found is not None and found[0] else words


class Trials:
    """Counts them, and ends the search at a limit."""

    def __init__(self, good: Good, limit_s: float, most: int = _MOST_TRIALS) -> None:
        self.count = 0
        self._most = most
        self._good = good
        self._end = time.monotonic() + limit_s

    def go_right(self, backend: Callable[..., Any]) -> bool:
        if self.count >= self._most or time.monotonic() > self._end:
            raise TooManyTrials(f"not found within {self.count} trials")
        self.count += 1
        return self._good(backend)


def _bisected(trials: Trials) -> tuple[str | None, str] | None:
    """Name and words; None where torch has no bisector, or somebody uses it already."""
    try:
        from torch._inductor.compiler_bisector import CompilerBisector
    except ImportError:
        return None
    if CompilerBisector.get_backend() is not None:
        return None

    def test() -> bool:
        return trials.go_right(_backend_under_test(CompilerBisector))

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = CompilerBisector.do_bisect(test)
    finally:
        _forget(CompilerBisector)
    return _told(found)


def _told(found: Any) -> tuple[str | None, str]:
    if found is None:
        return None, "torch's bisector finds nothing wrong"
    if found.backend != "inductor":
        name = f"{found.backend}: {found.subsystem}" if found.subsystem else str(found.backend)
        detail = f" ({found.debug_info})" if found.debug_info else ""
        return name + detail, f"it is wrong before Inductor, with backend={found.backend!r}"
    if found.subsystem is None:
        return None, "in Inductor, but in no pass or lowering that torch can turn off"
    info = str(found.debug_info or "").strip()
    name = f"{found.subsystem}: {info}" if info and info != found.subsystem else found.subsystem
    return name, f"torch's bisector: right with application {found.bisect_number} of it disabled"


def _backend_under_test(bisector: Any) -> Callable[..., Any]:
    from torch._dynamo.backends.registry import lookup_backend
    from torch._inductor import config

    backend: Callable[..., Any] = lookup_backend(bisector.get_backend())
    changes = bisector.get_config_change("inductor")

    def compile_changed(module: Any, inputs: Any) -> Any:
        with config.patch(changes or {}):
            return backend(module, inputs)

    return compile_changed


def _forget(bisector: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        if bisector.in_process_cache:
            bisector.delete_bisect_status()
    bisector.in_process_cache = None
    bisector.bisection_enabled = False


def _by_settings(trials: Trials) -> str | None:
    """What has to be switched off for it to go right."""
    from torch._dynamo.backends.registry import lookup_backend
    from torch._inductor import config

    inductor = lookup_backend("inductor")
    for words, wanted in _SETTINGS:
        known = config.get_config_copy()
        changes = {name: value for name, value in wanted.items() if name in known}
        if not changes or all(known[name] == value for name, value in changes.items()):
            continue

        def compile_changed(module: Any, inputs: Any, changes: Any = changes) -> Any:
            with config.patch(changes):
                return inductor(module, inputs)

        if trials.go_right(compile_changed):
            return words
    return None


@contextlib.contextmanager
def noted_code() -> Iterator[list[str]]:
    """The code that Inductor writes within the block, in order: forward, then backward."""
    found: list[str] = []
    try:
        from torch._inductor.graph import GraphLowering
    except ImportError:
        yield found
        return
    before = getattr(GraphLowering, "save_output_code", None)

    def both(text: str) -> None:
        if before is not None:
            before(text)
        found.append(text)

    GraphLowering.save_output_code = both
    try:
        yield found
    finally:
        GraphLowering.save_output_code = before
