"""A crash as something to minify: by what it is recognised while the source around it shrinks.

Kept are the class of the exception, and of its innermost cause the class, the words without sizes
and the function of torch that raised it; or the signal. Lines and functions of the program are not.
"""

from __future__ import annotations

import signal
import traceback

from compilescope.analysis.digest import Digest
from compilescope.findings.failures import FailureFinding
from compilescope.minify.script.embedded.crashes import crash_sign, innermost
from compilescope.minify.source.findings import SourceFinding, source_finding
from compilescope.model.stack import origin_of

_SIGNALS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_LONGEST = 200
"""Letters by which two crashes are the same. Chosen: the first line of an error, without a long
tail that changes from run to run."""
_COMPILER = ("torch._dynamo.", "torch._inductor.", "torch._functorch.", "torch.fx.")


def crash_of(error: BaseException, digest: Digest) -> SourceFinding | None:
    """The exception that ended the program; None where leaving was its own wish."""
    if not isinstance(error, Exception):
        return None
    outer, inner, words, where = crash_sign(error)  # type: ignore[no-untyped-call]
    file, line, function, source = _place(error, digest)
    said = f"{inner}: {words}" if words else inner
    real = (str(innermost(error)).strip().splitlines() or [""])[0][:_LONGEST]  # type: ignore[no-untyped-call]
    title = f"{inner}: {real}" if real else inner
    return source_finding(
        "failure",
        what=outer,
        reason=said,
        subject=_phase(error),
        installed=where,
        file=file,
        line=line,
        function=function,
        source=source,
        title=title if inner == outer else f"{outer}, caused by {title}",
        error=outer,
    )


def crash_key(crash: SourceFinding) -> tuple[str, str, str, str]:
    """As `crash_sign` has it."""
    inner, _, words = crash.reason.partition(": ")
    return crash.what, inner, words, crash.installed


def died(number: int) -> SourceFinding | None:
    """A process that a signal ended; None for a signal that is no crash."""
    names = {getattr(signal, name): name for name in _SIGNALS if hasattr(signal, name)}
    if number not in names:
        return None
    name = names[number]
    return source_finding(
        "failure",
        what=name,
        reason=str(int(number)),
        subject="signal",
        file="",
        line=0,
        function="",
        source="",
        title=f"the process is killed by {name}",
        error=name,
    )


def is_of_compiler(crash: SourceFinding) -> bool:
    """Can it come from compilation alone? Else a run without any must show that."""
    return crash.subject in ("trace", "backend")


def how_known(crash: SourceFinding) -> str:
    """By what a smaller program is known to crash in the same way."""
    if crash.subject == "signal":
        return f"the same signal ({crash.what}), and no signal without torch.compile"
    cause = crash.reason.rstrip(".")
    words = f"the same exception ({crash.what}) with the same root cause ({cause}"
    words += f", raised by {crash.installed})" if crash.installed else ")"
    return words if is_of_compiler(crash) else f"{words}, and no exception without torch.compile"


def _phase(error: Exception) -> str:
    """`trace` and `backend` are the compiler's own errors; `run` is any other."""
    if "BackendCompilerFailed" in (each.__name__ for each in type(error).__mro__):
        return "backend"
    return "trace" if type(error).__module__.startswith(_COMPILER) else "run"


def _place(error: Exception, digest: Digest) -> tuple[str, int, str, str]:
    """The line at which compilation failed; else the last line of the program's own."""
    own = [failure for failure in digest.failures if failure.error == type(error).__name__]
    if own:
        failure: FailureFinding = own[-1]
        return failure.file, failure.line, failure.function, failure.source.strip()
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if origin_of(frame.filename) == "user" and "compilescope" not in frame.filename:
            return frame.filename, frame.lineno or 0, frame.name, (frame.line or "").strip()
    return "", 0, "", ""
