"""How the program ended: in order, with a status, by a signal or by an exception, in one line.

And why it recorded no torch, where it did not.
"""

from __future__ import annotations

import re
import signal
from typing import Literal

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.benchmarks import is_benchmark
from compilescope.knowledge.analysis.sweeps import is_sweep
from compilescope.record.bodies import JobEnded, ProcessEnded
from compilescope.record.error_text import one_line, user_place
from compilescope.record.event import Event
from compilescope.record.fingerprint import relative_file
from compilescope.record.header import signal_name
from compilescope.record.run import Run

NONE_IMPORTED = "No process of this program imported torch: there was nothing to record."
How = Literal["normally", "exit", "exception", "signal", "running", "unknown"]
_RANK = late(r"^[ \t]*rank[ \t]*:[ \t]*(\d{1,9})", re.M)
_EXIT_CODE = late(r"^[ \t]*exitcode[ \t]*:[ \t]*(-?\d{1,9})", re.M)
_LONGEST = 300
"""Letters of an exception's own words. Chosen: it stays the one line that the summary has for
it."""
_BY_SIGNAL = 128
"""What a shell adds to the number of the signal that ended a program."""


class ProgramEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run."""

    how: How
    """`unknown`: nobody saw it, as in a log or where compilescope itself was stopped."""
    exit_status: int | None = None
    signal: str | None = None
    """By name."""
    exception: str = ""
    """`ValueError: no such file`: of the program, or of the process of it that failed first."""
    file: str = ""
    """Where it was raised: the user's innermost line."""
    line: int = 0
    rank: int | None = None
    """Of the process that raised it, under torchrun."""
    text: str = ""
    """In one sentence; empty where there is nothing to say."""

    @property
    def in_order(self) -> bool:
        return self.how in ("normally", "running") or (self.how == "unknown" and not self.text)


class _RaisedException(msgspec.Struct, frozen=True):
    exception: str
    file: str
    line: int
    rank: int | None = None
    aside: bool = False
    """In another process than the program's own, which need not be why the program ended."""


def how_it_ended(run: Run) -> ProgramEnd:
    raised = _raised(run)
    seen = ProgramEnd(
        how=_how(run, raised),
        exit_status=run.header.exit_status,
        signal=signal_name(run.header.signal),
        exception=raised.exception if raised else "",
        file=raised.file if raised else "",
        line=raised.line if raised else 0,
        rank=raised.rank if raised else None,
    )
    aside = raised is not None and raised.aside
    return msgspec.structs.replace(seen, text=_text(seen, run, aside=aside))


def _how(run: Run, raised: _RaisedException | None) -> How:
    header = run.header
    if run.live:
        return "running"
    if header.signal is not None:
        return "signal"
    if header.exit_status == 0:
        return "normally"
    if header.exit_status is not None:
        return "exception" if raised and not raised.aside else "exit"
    return "unknown"


def _raised(run: Run) -> _RaisedException | None:
    """The exception that ended the program, or the first that ended a process of it.

    A launcher such as torchrun says no more than that a child failed: the child's own is shown.
    """
    ends = [(event, body) for event, body in run.of(ProcessEnded) if body.error]
    own = next((end for end in ends if end[0].pid == run.header.main_pid), None)
    if own is not None and own[1].error != "ChildFailedError":
        return _described(*own)
    others = [end for end in ends if end is not own]
    if others and own is not None:
        return msgspec.structs.replace(_described(*others[0]), rank=others[0][0].rank)
    if others:
        return msgspec.structs.replace(_described(*others[0]), aside=True)
    return _child(*own) if own is not None else None


def _described(event: Event, body: ProcessEnded) -> _RaisedException:
    file, line = user_place(body.message) or _user_line(event)
    said = one_line(body.error, body.message)
    said = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
    return _RaisedException(said, file, line)


def _user_line(event: Event) -> tuple[str, int]:
    own = [frame for frame in event.stack if frame.origin == "user"]
    frame = own[-1] if own else event.site
    return (frame.file, frame.line) if frame is not None else ("", 0)


def _child(event: Event, body: ProcessEnded) -> _RaisedException:
    """What torchrun says of a child that left no word itself."""
    first = body.message.partition("Root Cause")[2] or body.message
    rank, code = _RANK.search(first), _EXIT_CODE.search(first)
    if rank is None or code is None:
        return _described(event, body)
    status = int(code[1])
    ended = (
        f"was terminated by {signal_name(-status)}" if status < 0 else f"ended with status {status}"
    )
    return _RaisedException(f"ChildFailedError: rank {rank[1]} {ended}", "", 0)


def _text(seen: ProgramEnd, run: Run, *, aside: bool) -> str:
    raised = _raised_words(seen, run.header.root)
    other = f"; one of its processes raised {raised}" if aside else ""
    because = f": {raised}" if raised and not aside else ""
    if is_sweep(run):
        # It is no program: its status says how its jobs ended, and they are told one by one.
        return _sweep_text(seen, run)
    if is_benchmark(run):
        return _benchmark_text(seen, run)
    if seen.how == "running":
        return "The program is still running."
    if seen.how == "signal":
        return f"The program was {_by_signal(seen, run.header.signal or 0)}{because}{other}."
    if seen.how == "normally":
        return f"The program ended normally{other}."
    if seen.how == "unknown":
        lost = run.header.launcher_pid is not None
        return "How the program ended is unknown: compilescope was stopped first." * lost
    return f"The program ended with exit status {seen.exit_status}{because}{other}."


def _sweep_text(seen: ProgramEnd, run: Run) -> str:
    if seen.how == "running":
        return "The sweep is still running."
    cancelled = any(body.state == "cancelled" for _, body in run.of(JobEnded))
    stopped = cancelled or run.header.ended_ns is None
    return "The sweep was stopped before all jobs had ended." * stopped


def _benchmark_text(seen: ProgramEnd, run: Run) -> str:
    """Its status says whether all models could be measured, which is told one by one."""
    if seen.how == "running":
        return "The benchmark is still running."
    if seen.how == "signal" or (seen.exit_status or 0) > _BY_SIGNAL:
        return "The benchmark was interrupted; what was measured before that is here."
    lost = seen.how == "unknown" and run.header.launcher_pid is not None
    return "The benchmark was stopped before its end; what was measured before that is here." * lost


def _raised_words(seen: ProgramEnd, root: str) -> str:
    if not seen.exception:
        return ""
    at = f" ({relative_file(seen.file, root)}:{seen.line})" if seen.file else ""
    rank = f"in rank {seen.rank}, " if seen.rank is not None else ""
    return f"{rank}{seen.exception.rstrip('.')}{at}"


def _by_signal(seen: ProgramEnd, number: int) -> str:
    if seen.exception.startswith("KeyboardInterrupt"):
        return f"interrupted by {seen.signal}"
    meaning = signal.strsignal(number) if number in signal.valid_signals() else None
    return f"terminated by {seen.signal}" + (f" ({meaning.lower()})" if meaning else "")


# Why a run records no torch: no process imported it, or none could be watched.
#
# One sentence, which every view shows; empty for a run that has torch in it.


def without_torch(run: Run) -> str:
    """One sentence for a run that records no torch; empty for all others."""
    if run.torch_version is not None:
        return ""
    seen = run.presence
    if seen is None:
        return NONE_IMPORTED  # A log, or recorded by an earlier version.
    if seen.failed:
        return f"torch was imported, but nothing could be recorded: {_sentence(seen.failed[0])}"
    if seen.torch:
        return "torch was imported, but nothing was compiled."
    main = run.header.main_pid
    if main is not None and main not in seen.started:
        return (
            "Whether the program imported torch is unknown: compilescope could not watch its "
            "process. Python ignores PYTHONPATH with -I, -E or -S."
        )
    silent = seen.started - seen.ended
    if silent and not run.live and run.header.signal is None:
        return (
            "Whether the program imported torch is unknown: process "
            f"{min(silent)} was replaced by another program, killed, or left with os._exit."
        )
    return NONE_IMPORTED


def _sentence(reason: str) -> str:
    return reason if reason.endswith(".") else f"{reason}."
