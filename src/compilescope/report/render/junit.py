"""A judgement as JUnit XML, for CI systems that draw test results.

A test case for each check, and one for each cause that counts against the run. What could not be
told is an error, never a pass.
"""

from __future__ import annotations

from xml.etree import ElementTree

from compilescope.base.texts import visible
from compilescope.knowledge.analysis.gate.verdict import GateCheck, Judgement
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.stack import place_of
from compilescope.report.finding import advice_text
from compilescope.report.places import place, shown_path

_SUITE = "compilescope"


def to_junit(judgement: Judgement, root: str) -> str:
    cases = [_check_case(check) for check in judgement.checks]
    cases += [_finding_case(finding, root) for finding in judgement.against]
    # `time` is not ours to measure here, yet some readers ask for it.
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": "0",
        "time": "0",
    }
    suites = ElementTree.Element("testsuites", {"name": _SUITE, **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _SUITE, **counts})
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", {"name": "run", "value": visible(judgement.run)})
    suite.extend(cases)
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _check_case(check: GateCheck) -> ElementTree.Element:
    case = _case(f"{_SUITE}.limits", f"{check.name} {check.subject}".rstrip())
    if check.outcome == "fail":
        text = "\n".join(map(_titled, check.findings))
        _mark(case, "failure", check.message, "LimitExceeded", text)
    elif check.outcome == "unknown":
        message = f"inconclusive: {check.message}"
        _mark(case, "error", message, "CouldNotTell", message)
    return case


def _titled(finding: Finding) -> str:
    at = f" ({place_of(finding.file, finding.line)})" if finding.file else ""
    return f"{finding.title}{at}"


def _finding_case(finding: Finding, root: str) -> ElementTree.Element:
    where = place(finding.file, finding.line, root) if finding.file else "unknown location"
    # Readers follow a case by its name: no line number in it, and no two cases of one name.
    file = shown_path(finding.file, root) or "unknown location"
    case = _case(f"{_SUITE}.{finding.kind}", f"{finding.title} ({file}) {finding.fingerprint}")
    if finding.file:
        case.set("file", _line(file))
        case.set("line", str(finding.line))
    lines = [
        f"{where} in {finding.function}" if finding.function else where,
        finding.source.strip() and f"    {finding.source.strip()}",
        finding.message,
        advice_text(finding),
    ]
    text = "\n".join(line for line in lines if line)
    _mark(case, "failure", f"{finding.title}: {where}", finding.rule_id, text)
    return case


def _case(classname: str, name: str) -> ElementTree.Element:
    attributes = {"classname": classname, "name": _line(name), "time": "0"}
    return ElementTree.Element("testcase", attributes)


def _mark(case: ElementTree.Element, kind: str, message: str, of: str, text: str) -> None:
    attributes = {"message": _line(message), "type": _line(of)}
    ElementTree.SubElement(case, kind, attributes).text = visible(text)


def _line(text: str) -> str:
    """On one line: attributes keep no line breaks."""
    return " ".join(visible(text).split())
