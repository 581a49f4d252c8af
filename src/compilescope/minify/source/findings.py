"""Breaks, recompiles and crashes, reduced to what stays the same while the program shrinks.

Two with the same fingerprint are the same problem, wherever it now stands in the source.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Literal

from compilescope.analysis.digest import Digest
from compilescope.findings.breaks import BreakFinding
from compilescope.findings.failures import FailureFinding
from compilescope.findings.finding import Finding, is_own
from compilescope.findings.recompiles import RecompileFinding
from compilescope.model.bodies import Recompile
from compilescope.model.body import FindingKind, Level
from compilescope.model.fingerprint import fingerprint, normalised, relative_file
from compilescope.model.run import Run
from compilescope.source.spots import Place, Sources, SourceSpot

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
