"""From a cause to a question for a language model: our facts, PyTorch's own words, an excerpt.

Folders are left out of every path. With redaction the question is made from the redacted run, so
that none of the user's names is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.registry.table import Entry, load_registry
from compilescope.knowledge.source.spots import Sources
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.fingerprint import relative_file
from compilescope.record.run import Run
from compilescope.report.llm.prompt import CauseQuestion

# Chosen: lines around the cause, and letters of PyTorch's words: a question stays small and tells
# no more of a program than needed.
_AROUND = 6
_MOST_CONTEXT = 2000
_MOST_MESSAGE = 4000
_FOLDERS = re.compile(
    r"(?<![\w/\\.:~])(?:file://|~|[A-Za-z]:)?[/\\](?:[^\s/\\\"'`<>|:*?,;()\[\]{}]+[/\\])+"
)
"""All of an absolute path but its last part. An address of the web is none: it has a host."""
_OUR_WORDS = re.compile(
    r"^(Kind|Category|What|Place|Why|Result|Suggested by compilescope|Times|Graph break|Explanation"
    r"|Context|Error|Hint|Failed guard): |^From PyTorch's table of graph breaks, ",
    re.MULTILINE,
)
"""They stand in every question, so a user's name that is one of them is not given away by them."""
_PLACEHOLDER = re.compile(r"<[^<>]*>")


def questions_for(
    run: Run, seen: Digest, causes: Sequence[Finding], *, redacted: bool = False
) -> list[CauseQuestion]:
    """One for each cause, in the same order."""
    if redacted:
        return _redacted(run, causes)
    sources = Sources(run)
    return [_question(run, seen, finding, sources) for finding in causes]


def _redacted(run: Run, causes: Sequence[Finding]) -> list[CauseQuestion]:
    """The same causes of the redacted run, whose events keep their ids."""
    from compilescope.report.sharing.redaction.run import a_few, leaked_names, redact

    redaction = redact(run, MemoryArtifacts())
    other, seen = redaction.run, digest(redaction.run)
    known = {(found.kind, found.because): found for found in findings(seen)}
    sources = Sources(other)
    questions = []
    for finding in causes:
        alike = known.get((finding.kind, finding.because)) if finding.because else None
        if alike is None:
            raise ToolError(
                f"The cause {finding.title!r} can't be redacted, so nothing was sent.",
                hint="Ask without --llm-redact, or about another cause with --cause.",
            )
        questions.append(_question(other, seen, alike, sources))
    said = (text for each in questions for text in (each.cause, each.pytorch, each.source))
    leaked = leaked_names(redaction, (_OUR_WORDS.sub("", text) for text in said))
    if leaked:
        raise ToolError(
            f"Redaction would have left names of yours, such as {a_few(leaked)}, so "
            "nothing was sent.",
            hint="This is a bug in compilescope; please report it.",
        )
    return questions


def _question(run: Run, seen: Digest, finding: Finding, sources: Sources) -> CauseQuestion:
    cause = "\n".join(cause_facts(finding, seen.root))
    pytorch = "\n".join(pytorch_words(finding, seen))
    return CauseQuestion(
        without_folders(cause, run),
        _excerpt(sources, finding),
        seen.torch or "unknown",
        without_folders(pytorch, run),
    )


def cause_facts(finding: Finding, root: str) -> Iterator[str]:
    """What compilescope itself knows."""
    yield f"Kind: {finding.kind} ({finding.rule_id})"
    if isinstance(finding, BreakFinding) and finding.category:
        yield f"Category: {finding.category}"
    yield f"What: {finding.title}"
    if finding.file:
        file = relative_file(finding.file, root)
        yield f"Place: {file}, line {finding.line}, in {finding.function}"
    if finding.message:
        yield f"Why: {finding.message}"
    if isinstance(finding, BreakFinding):
        yield f"Result: {finding.outcome}"
    if finding.first_step:
        yield f"Suggested by compilescope: {finding.first_step}"
    yield f"Times: {finding.count}"


def pytorch_words(finding: Finding, seen: Digest) -> Iterator[str]:
    """What PyTorch said when it happened, then what its table of graph breaks adds."""
    said: list[str] = []
    gb_id = None
    match finding:
        case BreakFinding():
            gb_id = finding.gb_id
            said += [f"Graph break: {finding.gb_type} ({gb_id or 'no ID'})"]
            said += [f"Explanation: {finding.explanation}"] if finding.explanation else []
            said += _hints(finding.hints)
            said += [f"Context: {finding.context[:_MOST_CONTEXT]}"] if finding.context else []
        case FailureFinding():
            gb_id = finding.gb_id
            said += [f"Error: {finding.error}: {finding.text.strip()[:_MOST_MESSAGE]}"]
            said += _hints(finding.hints)
        case RecompileFinding():
            said += _guards(finding, seen)
    yield from said
    yield from _of_table(gb_id, "\n".join(said))


def _hints(hints: Iterable[str]) -> list[str]:
    return [f"Hint: {hint}" for hint in hints]


def _guards(finding: RecompileFinding, seen: Digest) -> list[str]:
    """The guards that failed, as PyTorch writes them: a value may be guarded in several parts."""
    said = []
    for each in (cause for frame in seen.recompiles for cause in frame.causes):
        if each.fingerprint == finding.fingerprint and each.guard:
            values = f" (expected {each.expected or '?'}, got {each.actual or '?'})"
            said.append(f"Failed guard: {each.guard}{values}")
    return list(dict.fromkeys(said))


def _of_table(gb_id: str | None, said: str) -> Iterator[str]:
    """The table's newest wording, as far as it was not said already."""
    entry = _entry(gb_id)
    if entry is None:
        return
    variant = entry.variants[0]
    lines = [f"Explanation: {variant.explanation}"] if variant.explanation else []
    lines += _hints(variant.hints)
    new = [line for line in lines if not _is_said(line.partition(": ")[2], said)]
    if new:
        yield f"From PyTorch's table of graph breaks, {entry.gb_id} ({entry.title}):"
        yield from new


def _is_said(wording: str, said: str) -> bool:
    """The table has placeholders where the message had names."""
    pieces = (re.escape(piece) for piece in _PLACEHOLDER.split(wording))
    return re.search(".*?".join(pieces), said) is not None


def _entry(gb_id: str | None) -> Entry | None:
    if gb_id is None:
        return None
    try:
        return load_registry().get(gb_id)
    except ToolError:
        return None  # No torch here: what was recorded is enough.


def _excerpt(sources: Sources, finding: Finding) -> str:
    lines = sources.lines(finding.file) if finding.file else []
    if not 0 < finding.line <= len(lines):
        return f"> {finding.line}: {finding.source}" if finding.source else ""
    first, last = max(1, finding.line - _AROUND), min(len(lines), finding.line + _AROUND)
    return "\n".join(
        f"{'>' if number == finding.line else ' '} {number}: {lines[number - 1]}"
        for number in range(first, last + 1)
    )


def without_folders(text: str, run: Run) -> str:
    """The folders of the run first: they may have spaces, which end a path elsewhere."""
    for folder in (run.header.root, run.header.cwd):
        if len(folder) > 1:
            text = text.replace(f"{folder.rstrip('/')}/", "").replace(folder, ".")
    return _FOLDERS.sub("", text)
