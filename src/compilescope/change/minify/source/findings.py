"""Breaks, recompiles and crashes, reduced to what stays the same while the program shrinks; which
of them is minified; and the messages about them between the minifier and the process that tries
a program. Needs no torch.

Two with the same fingerprint are the same problem, wherever it now stands in the source.

Kept are the class of the exception, and of its innermost cause the class, the words without sizes
and the function of torch that raised it; or the signal. Lines and functions of the program are not.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import traceback
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from compilescope.base.errors import ToolError
from compilescope.change.minify.script.embedded.crashes import crash_sign, innermost
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding, is_own
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.source.spots import Place, Sources, SourceSpot
from compilescope.record.bodies import Recompile
from compilescope.record.body import FindingKind, Level
from compilescope.record.fingerprint import fingerprint, normalised, relative_file
from compilescope.record.run import Run
from compilescope.record.stack import origin_of

Predicate = Literal["break", "recompile", "crash"]
_PREDICATES: dict[FindingKind, Predicate] = {
    "break": "break",
    "recompile": "recompile",
    "failure": "crash",
}

# The first thing in a sentence of torch's that depends on the program around it.
_PASSING = re.compile(
    r"(?<!\s)\s*(?:<|\[|\{|0x|\bwith argument types\b|\b[usz]?\d+\b|\(reason\b|'/)"
)
_SENTENCE_END = re.compile(r"\.[`'\")]*\s+(?=[A-Z])")
_COMPILE_ID = re.compile(r"^(?:- )?\[?\d+/\d+\]?: ")
_VALUE = re.compile(r"(?<![\w'])\d|(?<== )'")
_NUMBER = re.compile(r"\d+")
_GLOBAL = re.compile(r"^[GL]\['(\w+)'\]")
_WRAPPED = re.compile(r"^(\w+)\((.*)\)$")
_OF_A_TENSOR = re.compile(
    r"^(?:size|stride|dim|storage_offset|keys|device|dtype|layout|requires_grad)\b"
)


class SourceFinding(Finding, frozen=True, kw_only=True):
    """What is kept of a finding while the program around it shrinks, and where it stands now.

    Its fingerprint is of the kept part alone: two with the same are the same. The crash that ended
    a program is a failure.
    """

    kind: FindingKind
    title: str
    what: str
    """gb_type, the kind of the guard, or the class of an exception."""
    gb_id: str = ""
    reason: str = ""
    call: str = ""
    """The name that is called where it breaks."""
    subject: str = ""
    """The end of the path to the value that a guard checks; of a crash, when it comes."""
    installed: str = ""
    """File and line in an installed package; of a crash, the function that raises."""
    guard: str = ""
    logged: str = ""
    """The failed guard in torch's own words, where it is the first that torch names."""
    echo: bool = False
    """It is what another break left behind."""
    error: str = ""
    """The exception that it was raised as, under fullgraph=True."""

    @property
    def predicate(self) -> Predicate:
        """As the command line calls its kind."""
        return _PREDICATES[self.kind]

    @property
    def rule_id(self) -> str:
        return self.gb_id or self.rule or self.what

    @property
    def message(self) -> str:
        return self.reason

    @property
    def level(self) -> Level:
        return "note" if self.echo else "error" if self.kind == "failure" else "warning"


_KEPT = ("what", "gb_id", "rule", "reason", "call", "subject", "installed")


def source_finding(kind: FindingKind, **said: Any) -> SourceFinding:
    kept = "\0".join([_PREDICATES[kind], *(said.get(name) or "" for name in _KEPT)])
    return SourceFinding(kind=kind, fingerprint=fingerprint(kept, None, ""), **said)


def findings_of(run: Run, digest: Digest) -> list[SourceFinding]:
    """Breaks (those that fullgraph=True made errors too), then recompiles, as the digest ranks."""
    sources = Sources(run)
    found = [_of_site(site, digest.root, sources) for site in digest.sites]
    broken = [failure for failure in digest.failures if failure.gb_type]
    found += [_of_failure(failure, digest.root, sources) for failure in broken]
    for frame in digest.recompiles:
        found += [_of_recompile(cause, run) for cause in frame.causes]
    return found


def _of_site(site: BreakFinding, root: str, sources: Sources) -> SourceFinding:
    place = Place(site.file, site.line, site.column, site.end_column, site.source)
    return source_finding(
        "break",
        what=site.gb_type,
        gb_id=site.gb_id or "",
        rule=site.rule or site.category,
        reason=lasting(site.explanation),
        call=_call(sources.spot(place)) if is_own(site.file) else "",
        installed=_installed(site.file, site.source, root),
        file=site.file,
        line=site.line,
        function=site.function,
        source=site.source.strip(),
        title=site.gb_type,
        echo=site.consequence_of is not None,
    )


def _of_failure(failure: FailureFinding, root: str, sources: Sources) -> SourceFinding:
    place = Place(failure.file, failure.line, failure.column, failure.end_column, failure.source)
    words = failure.text.partition("Explanation:")[2] or failure.text
    return source_finding(
        "break",
        what=failure.gb_type or failure.error,
        gb_id=failure.gb_id or "",
        rule=failure.category,
        reason=lasting(words),
        call=_call(sources.spot(place)) if is_own(failure.file) else "",
        installed=_installed(failure.file, failure.source, root),
        file=failure.file,
        line=failure.line,
        function=failure.function,
        source=failure.source.strip(),
        title=failure.gb_type or failure.error,
        error=failure.error,
    )


def _of_recompile(cause: RecompileFinding, run: Run) -> SourceFinding:
    return source_finding(
        "recompile",
        what=cause.guard_kind,
        rule=cause.rule or "",
        subject=path_end(cause.subject),
        file=cause.file,
        line=cause.line,
        function=cause.function,
        source=cause.source,
        title=cause.title,
        guard=cause.guard,
        logged=_logged(cause, run),
    )


def _logged(cause: RecompileFinding, run: Run) -> str:
    """Torch logs the first failed guard of each entry: its words, where that is this one."""
    behind = set(cause.because)
    for event, body in run.of(Recompile):
        for entry in body.entries if event.id in behind else ():
            if entry.failed and entry.failed[0].guard == cause.guard:
                return entry.reason
    return ""


def lasting_guard(reason: str) -> str:
    """Torch's words on a failed guard, up to the first value in them."""
    words = _COMPILE_ID.sub("", reason.partition("#")[0].strip())
    found = _VALUE.search(words)
    return (words[: found.start()] if found else words).strip()


def lasting(explanation: str) -> str:
    """Its first sentence, up to what depends on the program."""
    lines = explanation.strip().splitlines()
    first = _SENTENCE_END.split(normalised(lines[0]), maxsplit=1)[0] if lines else ""
    found = _PASSING.search(first)
    return (first[: found.start()] if found else first).rstrip(" `'\":(")


def path_end(subject: str) -> str:
    """`self.encoder.layers[3].scale` -> `scale`; `self.x.size()[1]` -> `x.size()[N]`."""
    wrapped = _WRAPPED.match(subject)
    if wrapped and "(" not in wrapped.group(2):
        return f"{wrapped.group(1)}({path_end(wrapped.group(2))})"
    parts = _NUMBER.sub("N", _GLOBAL.sub(r"\1", subject)).split(".")
    end = [parts.pop()]
    while parts and _OF_A_TENSOR.match(end[0]):
        end.insert(0, parts.pop())
    short = ".".join(end)
    # A whole expression, `int(x.sum())`, is no path.
    return short if short.count("(") == short.count(")") else _NUMBER.sub("N", subject)


def _installed(file: str, source: str, root: str) -> str:
    if is_own(file):
        return ""
    return f"{relative_file(file, root)}: {normalised(source)}"


def _call(spot: SourceSpot) -> str:
    """The name of what is called there; none where a condition is what cannot be decided."""
    node = spot.expression
    if not isinstance(node, ast.Call) or node is getattr(spot.statement, "test", None):
        return ""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


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


_SITE = re.compile(r"^(?P<file>.+):(?P<line>\d+)$")


@dataclass(frozen=True)
class SitePlace:
    """`file.py:12` of the command line."""

    file: str
    line: int

    def has(self, cause: SourceFinding) -> bool:
        if cause.line != self.line:
            return False
        mine, theirs = os.path.normpath(self.file), os.path.normpath(cause.file)
        return theirs == mine or theirs.endswith(os.sep + mine)


def read_site(text: str) -> SitePlace:
    found = _SITE.match(text)
    if found is None:
        raise ToolError(f"--site {text!r} is not FILE:LINE.", hint="For example: train.py:41")
    return SitePlace(found["file"], int(found["line"]))


@dataclass(frozen=True)
class ChosenFinding:
    """What to make smaller, and the others that there are."""

    finding: SourceFinding
    others: tuple[SourceFinding, ...]


def choose(
    seen: TrialResult, predicate: str | None, site: SitePlace | None
) -> ChosenFinding | None:
    """The first of the user's own causes; None where the program shows none at all.

    The crash that ended it comes first, breaks come before recompiles, and what another break left
    behind comes last.
    """
    distinct = list({(c.fingerprint, c.file, c.line): c for c in reversed(seen.findings)}.values())[
        ::-1
    ]
    fitting = [c for c in distinct if predicate in (None, c.predicate)]
    if site is not None:
        wanted = [c for c in fitting if site.has(c)]
        if not wanted:
            raise _nothing_there(site, fitting, predicate)
    else:
        wanted = sorted(fitting, key=lambda c: (c.predicate != "crash", c.echo, not c.own))
    if not wanted:
        return None
    first = wanted[0]
    return ChosenFinding(
        first, tuple(c for c in distinct if c is not first and not _same(c, first))
    )


def _same(one: SourceFinding, other: SourceFinding) -> bool:
    """A break that fullgraph=True made an error is that crash."""
    kinds = {one.kind, other.kind} == {"break", "failure"}
    return kinds and one.error == other.error != "" and one.line == other.line


def _nothing_there(site: SitePlace, found: list[SourceFinding], predicate: str | None) -> ToolError:
    what = predicate or "crash, break or recompile"
    places = ", ".join(dict.fromkeys(f"{os.path.basename(c.file)}:{c.line}" for c in found))
    return ToolError(
        f"The program shows no {what} at {site.file}:{site.line}.",
        hint=f"It shows them at {places}." if places else "It shows none at all.",
    )


TASK = "compilescope.change.minify.source.trial:try_program"
ORIGINAL_TASK = "compilescope.change.minify.source.trial:try_original"


class TrialRequest(msgspec.Struct, frozen=True):
    """A program to run."""

    text: str
    folder: str
    """Its working folder, and where its file is written."""
    paths: tuple[str, ...] = ()
    """Folders in which it finds modules of its own."""
    compiled: bool = True
    """False: `torch.compile` is to do nothing."""


class Original(msgspec.Struct, frozen=True):
    """The user's program as it is, in its own folder."""

    kind: Literal["script", "module", "code"]
    words: tuple[str, ...]
    root: str
    compiled: bool = True


class TrialResult(msgspec.Struct, frozen=True):
    """What a program showed."""

    findings: tuple[SourceFinding, ...]
    error: str = ""
    """The class of the exception that it ended with; a status other than 0 counts as one."""
    message: str = ""
    graphs: int = 0
    torch: str = ""
    failed: bool = False
    """A compilation failed, and no graph break is behind it."""
