"""A judgement as GitHub workflow commands, which GitHub shows beside the lines of a pull request.

A command ends with its line, so everything that a program wrote is escaped.
"""

from __future__ import annotations

import posixpath

from compilescope.base.texts import visible
from compilescope.knowledge.analysis.gate.verdict import GateCheck, Judgement
from compilescope.knowledge.findings.finding import Finding
from compilescope.report.finding import advice_text


def to_annotations(judgement: Judgement, workspace: str = "") -> str:
    """One line each: every cause that counts, and every check that failed for no cause of its own.

    `workspace` is the folder of the checkout: GitHub knows files by their names in it.
    """
    lines = [_finding(finding, workspace) for finding in judgement.against]
    failed = [check for check in judgement.checks if check.outcome == "fail"]
    lines += [_check(c) for c in (*failed, *judgement.unsure) if not c.findings]
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, workspace: str) -> str:
    properties = {"title": f"{finding.rule_id}: {finding.title}"}
    if finding.file and not finding.file.startswith("<"):
        properties["file"] = _named(finding.file, workspace)
        if finding.line > 0:
            properties["line"] = str(finding.line)
            properties.update(_columns(finding))
    lines = [finding.message, advice_text(finding)]
    return _command(properties, "\n".join(line for line in lines if line) or finding.title)


def _columns(finding: Finding) -> dict[str, str]:
    """GitHub counts from 1, and its last column belongs to the expression.

    Of several lines it takes no columns.
    """
    if finding.end_line is not None and finding.end_line > finding.line:
        return {"endLine": str(finding.end_line)}
    if finding.column is None or finding.end_column is None:
        return {}
    end = str(finding.line)
    columns = {"col": str(finding.column + 1), "endColumn": str(finding.end_column)}
    return {"endLine": end, **columns}


def _check(check: GateCheck) -> str:
    told = "" if check.outcome == "fail" else "Inconclusive: "
    return _command({"title": f"compilescope: {check.name}"}, f"{told}{check.message}")


def _named(file: str, workspace: str) -> str:
    top = workspace.rstrip("/") + "/"
    path = posixpath.normpath(file)
    return path[len(top) :] if workspace and path.startswith(top) else path


def _command(properties: dict[str, str], message: str) -> str:
    named = ",".join(f"{name}={_escaped_property(text)}" for name, text in properties.items())
    return f"::error {named}::{_escaped(message)}"


def _escaped(text: str) -> str:
    lines = (visible(line).replace("%", "%25").replace("\n", "%0A") for line in text.split("\r"))
    return "%0D".join(lines)


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
