"""Findings as SARIF 2.1.0, for code scanners. One run of the log for each document.

Every result has a place with a file: GitHub refuses a whole log for one result without. Files are
named relative to a base that the log declares, or as absolute URIs.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from compilescope.base.texts import plain_json, visible
from compilescope.base.version import VERSION
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.registry.pages import Pages
from compilescope.knowledge.rules.causes.catalogue import RuleWords, rule_words
from compilescope.record.stack import origin_of
from compilescope.report.blocks import Document, ShownRun
from compilescope.report.finding import advice_text

DOCS = "https://github.com/compilescope/compilescope/tree/main/docs"
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_MOST_EVENTS = 20
"""Ids of events behind one finding. Chosen: a few suffice to look them up, and the file stays
small."""
_NO_RESULTS = '"results": []'
_Object = dict[str, Any]
SOURCES = "SRCROOT"
_PACKAGES = re.compile(r"^(.*[/\\](?:site|dist)-packages)[/\\]")
_DRIVE = re.compile(r"^[A-Za-z]:[/\\]")


def to_sarif(documents: Sequence[Document]) -> str:
    names: dict[str, int] = {}
    runs, results = [], []
    for document in documents:
        name = _program(document.record)
        names[name] = names.get(name, 0) + 1
        # GitHub takes runs of one category for one analysis, and refuses two of them in one log.
        category = f"compilescope/{name}" + (f"-{names[name]}" if names[name] > 1 else "")
        bases = UriBases(document.root, document.record.cwd)
        results.append("".join(_results(document, bases)))
        runs.append(_run(document, f"{category}/{document.record.run}", bases))
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": runs}
    # Results are written one by one: as objects, all at once, they take several times the memory
    # of their text. No text within the JSON looks like the key: its quotes would be escaped.
    *parts, last = plain_json(log, indent=1).split(_NO_RESULTS)
    pairs = zip(parts, results, strict=True)
    return "".join((*itertools.chain.from_iterable(pairs), last, "\n"))


def _results(document: Document, bases: UriBases) -> Iterator[str]:
    """The value of a run's `results`, as the lines around it are indented."""
    rules = _rules(document)
    yield '"results": ['
    for number, finding in enumerate(document.findings):
        text = plain_json(_result(finding, rules[finding.rule_id], document, bases), indent=1)
        yield f"{',' if number else ''}\n{text}".replace("\n", "\n    ")
    yield "\n   ]" if document.findings else "]"


def _rules(document: Document) -> dict[str, int]:
    """Every rule that found something, and its number."""
    return {
        rule: number
        for number, rule in enumerate(dict.fromkeys(each.rule_id for each in document.findings))
    }


def _run(document: Document, automation_id: str, bases: UriBases) -> _Object:
    """All but its results, whose places have been asked for."""
    driver = {
        "name": "compilescope",
        "version": VERSION,
        "semanticVersion": VERSION,
        "informationUri": DOCS,
        "rules": [_rule(rule, Pages(document.site)) for rule in _rules(document)],
    }
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": automation_id},
        "invocations": [_invocation(document.record)],
        # Our columns count characters, as Python's strings do.
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": bases.declared(),
        "results": [],
        "properties": {"run": document.record.run, "torch": document.record.torch},
    }


def _rule(rule: str, pages: Pages) -> _Object:
    words = rule_words(rule)
    page = pages.url(rule) if rule.startswith("GB") else ""
    docs = f"{DOCS}/guides/registry.md" if rule.startswith("GB") else f"{DOCS}/guides/gate.md"
    described: _Object = {
        "id": rule,
        "shortDescription": {"text": _text(words.title or rule)},
        "helpUri": page or docs,
        "help": _help(words),
    }
    if words.why:
        described["fullDescription"] = {"text": _text(words.why)}
    tags = ["torch.compile", *([words.category] if words.category else [])]
    described["properties"] = {"tags": tags}
    return described


def _help(words: RuleWords) -> _Object:
    parts = [words.title + ".", words.why, words.fix and f"What helps: {words.fix}"]
    return {"text": _text("\n\n".join(part for part in parts if part))}


def _result(finding: Finding, rule: int, document: Document, bases: UriBases) -> _Object:
    result: _Object = {
        "ruleId": finding.rule_id,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": _text(_message(finding))},
        "locations": [_location(finding, bases, document.record)],
        "partialFingerprints": {"compilescope/v1": finding.fingerprint},
        "occurrenceCount": max(finding.count, 1),
        "properties": {
            "kind": finding.kind,
            "own": finding.own,
            "ranks": list(finding.ranks),
            "because": list(finding.because[:_MOST_EVENTS]),
            "advice": msgspec.to_builtins(finding.advice),
        },
    }
    if document.accepted is not None:
        known = finding.fingerprint in document.accepted
        result["baselineState"] = "unchanged" if known else "new"
    return result


def _message(finding: Finding) -> str:
    parts = [finding.title.rstrip(".") + ".", finding.message]
    parts.append(advice_text(finding))
    return "\n".join(part.strip() for part in parts if part.strip())


def _location(finding: Finding, bases: UriBases, record: ShownRun) -> _Object:
    # A failure may have no place; what was run is then the nearest there is.
    file = finding.file or next((word for word in record.command if word.endswith(".py")), "")
    if file and not finding.file and record.cwd and not file.startswith("/"):
        file = f"{record.cwd.rstrip('/')}/{file}"
    physical: _Object = {"artifactLocation": bases.location(file)}
    if finding.file and finding.line > 0:
        physical["region"] = _region(finding)
        several = finding.end_line is not None and finding.end_line > finding.line
        # The context must hold the whole region, and only the first line is at hand.
        if finding.source.strip() and not several:
            snippet = {"text": finding.source}
            physical["contextRegion"] = {"startLine": finding.line, "snippet": snippet}
    location: _Object = {"physicalLocation": physical}
    if finding.function:
        logical = {"name": finding.function, "kind": "function"}
        location["logicalLocations"] = [logical]
    return location


def _region(finding: Finding) -> _Object:
    """Columns count from 1 there, and the end is the first that no longer belongs to it."""
    region = {"startLine": finding.line}
    if finding.column is not None and finding.column >= 0:
        region["startColumn"] = finding.column + 1
        end = finding.end_line or finding.line
        if finding.end_column is None:
            return region
        if end > finding.line or finding.end_column > finding.column:
            region["endLine"] = end
            region["endColumn"] = finding.end_column + 1
    return region


def _invocation(record: ShownRun) -> _Object:
    invocation: _Object = {
        # A program that compiles nothing was watched all the same.
        "executionSuccessful": all(doubt.name == "compiled" for doubt in record.doubts),
        "toolExecutionNotifications": [
            {
                "descriptor": {"id": doubt.name},
                "level": "error",
                "message": {"text": _text(f"Inconclusive: {doubt.message}.")},
            }
            for doubt in record.doubts
        ],
    }
    if record.command:
        invocation["commandLine"] = shlex.join(record.command)
    if record.exit_status is not None:
        invocation["exitCode"] = record.exit_status
    if record.signal is not None:
        invocation["exitSignalNumber"] = record.signal
    if record.cwd:
        invocation["workingDirectory"] = {"uri": folder_uri(record.cwd)}
    return invocation


def _program(record: ShownRun) -> str:
    """A name for what was run, the same whenever it is run."""
    if record.command[:1] == ("-c",):
        return "code"
    words = [word for word in record.command if not word.startswith("-")]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", words[0] if words else "").strip("-.")
    return name[-60:] or "program"


def _text(text: str) -> str:
    """A plain message: no placeholder, no link, nothing that steers a terminal."""
    return visible(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")


class UriBases:
    """The folders that the URIs of one run are relative to."""

    def __init__(self, root: str, cwd: str) -> None:
        # A scanner looks for files from the top of the repository, and that is where `check` is
        # started; the program's own folder is often one below.
        self.sources = cwd if cwd and _inside(root, cwd) is not None else root
        self._packages: dict[str, str] = {}

    def location(self, file: str) -> dict[str, str]:
        """An `artifactLocation`."""
        found = _PACKAGES.match(file)
        if found and origin_of(file) in ("library", "torch"):
            base = self._packages.setdefault(found[1], self._package_name())
            return {"uri": _quoted(file[found.end() :]), "uriBaseId": base}
        inside = _inside(file, self.sources) if self.sources else None
        if inside:
            return {"uri": _quoted(inside), "uriBaseId": SOURCES}
        return {"uri": file_uri(file)}

    def declared(self) -> dict[str, dict[str, str]]:
        """`originalUriBaseIds`, once every location has been asked for."""
        folders = {name: folder for folder, name in self._packages.items()}
        if self.sources:
            folders = {SOURCES: self.sources, **folders}
        return {name: {"uri": folder_uri(folder)} for name, folder in folders.items()}

    def _package_name(self) -> str:
        number = len(self._packages)
        return "SITE_PACKAGES" + (f"_{number + 1}" if number else "")


def file_uri(file: str) -> str:
    """`file:///...`; what is no path at all (`<string>`, nothing) becomes a relative reference."""
    if _DRIVE.match(file):
        return "file:///" + quote(_bytes(_plain(file)), safe="/:")
    if file.startswith("/"):
        return "file://" + _quoted(_plain(file))
    return _quoted(file) or "unknown"


def folder_uri(folder: str) -> str:
    """With the slash at the end that a base must have."""
    uri = file_uri(folder)
    return uri if uri.endswith("/") else f"{uri}/"


def _inside(path: str, folder: str) -> str | None:
    """`path` relative to `folder`; None where it lies elsewhere."""
    path, folder = _plain(path), _plain(folder).rstrip("/")
    if path.rstrip("/") == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else None


def _plain(path: str) -> str:
    """With slashes, and without `..`, `.` and doubled slashes."""
    if _DRIVE.match(path):
        path = path.replace("\\", "/")
    return re.sub("^/+", "/", posixpath.normpath(path)) if path else ""


def _quoted(path: str) -> str:
    return quote(_bytes(path), safe="/")


def _bytes(text: str) -> bytes:
    # The bytes of a name that is not UTF-8, where Python kept them as surrogates.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
