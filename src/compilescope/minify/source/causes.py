"""Causes as the source minifier follows them: what must stay the same while a program shrinks."""

from __future__ import annotations

import ast
import re
from typing import Literal

import msgspec

from compilescope.analysis.digest import Digest
from compilescope.analysis.findings import is_own
from compilescope.findings.breaks import Site
from compilescope.findings.failures import Failure
from compilescope.findings.recompiles import RecompileCause, RecompiledFrame
from compilescope.model.bodies import Recompile
from compilescope.model.fingerprint import normalised, relative_file
from compilescope.model.run import Run
from compilescope.source.spots import Place, Sources, SourceSpot

CauseKind = Literal["break", "recompile", "crash"]

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


class SourceCause(msgspec.Struct, frozen=True, kw_only=True):
    """One cause: what is kept of it, and where it stands now."""

    kind: CauseKind
    what: str
    """gb_type, the kind of the guard, or the class of an exception."""
    gb_id: str = ""
    rule: str = ""
    reason: str = ""
    call: str = ""
    """The name that is called where it breaks."""
    subject: str = ""
    """The end of the path to the value that a guard checks; of a crash, when it comes."""
    installed: str = ""
    """File and line in an installed package; of a crash, the function that raises."""
    file: str
    line: int
    function: str
    source: str
    title: str
    guard: str = ""
    logged: str = ""
    """The failed guard in torch's own words, where it is the first that torch names."""
    echo: bool = False
    """It is what another break left behind."""
    error: str = ""
    """The exception that it was raised as, under fullgraph=True."""

    @property
    def key(self) -> tuple[str, ...]:
        """Two causes with the same key are the same."""
        return (
            self.kind,
            self.what,
            self.gb_id,
            self.rule,
            self.reason,
            self.call,
            self.subject,
            self.installed,
        )

    @property
    def own(self) -> bool:
        return is_own(self.file)


def causes_of(run: Run, digest: Digest) -> list[SourceCause]:
    """Breaks (those that fullgraph=True made errors too), then recompiles, as the digest ranks."""
    sources = Sources(run)
    found = [_of_site(site, digest.root, sources) for site in digest.sites]
    broken = [failure for failure in digest.failures if failure.gb_type]
    found += [_of_failure(failure, digest.root, sources) for failure in broken]
    for frame in digest.recompiles:
        found += [_of_recompile(cause, frame, run) for cause in frame.causes]
    return found


def _of_site(site: Site, root: str, sources: Sources) -> SourceCause:
    place = Place(site.file, site.line, site.column, site.end_column, site.source)
    return SourceCause(
        kind="break",
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


def _of_failure(failure: Failure, root: str, sources: Sources) -> SourceCause:
    place = Place(failure.file, failure.line, failure.column, failure.end_column, failure.source)
    words = failure.message.partition("Explanation:")[2] or failure.message
    return SourceCause(
        kind="break",
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


def _of_recompile(cause: RecompileCause, frame: RecompiledFrame, run: Run) -> SourceCause:
    return SourceCause(
        kind="recompile",
        what=cause.kind,
        rule=cause.rule or "",
        subject=path_end(cause.subject),
        file=cause.file or frame.file,
        line=cause.line or frame.line,
        function=frame.function,
        source=cause.source,
        title=f"{frame.function} recompiles: {cause.subject}",
        guard=cause.guard,
        logged=_logged(cause, frame, run),
    )


def _logged(cause: RecompileCause, frame: RecompiledFrame, run: Run) -> str:
    """Torch logs the first failed guard of each entry: its words, where that is this one."""
    behind = set(frame.because)
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
