"""How `verify` gives its answer: to people, as markdown for a pull request, as SARIF or JSON."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from compilescope.apps.cli import output as terminal
from compilescope.apps.cli.options import has_colour, report_width, write_whole
from compilescope.apps.cli.report_formats import markdown
from compilescope.apps.cli.streams import any_encoding, put
from compilescope.base.texts import plain_json
from compilescope.report.blocks import Document, ShownRun
from compilescope.report.verified_change import change_document

if TYPE_CHECKING:
    from compilescope.apps.cli.commands.verify.request import VerifyRequest
    from compilescope.change.repair.verification.run import VerifiedChange
    from compilescope.knowledge.findings.finding import Finding

EXIT_CODES = {"verified": 0, "changed": 1, "worse": 1, "unknown": 2}


def deliver(found: VerifiedChange, request: VerifyRequest) -> int:
    """On stdout, or into the file. The exit status."""
    code = EXIT_CODES[found.outcome.verdict]
    document = _document(found, request)
    if request.form == "terminal" and request.output is None:
        cut = sys.stdout.isatty() and not request.everything
        terminal.tell(document, terminal.kept(document, "verify") if cut else "")
        return code
    text = _drawn(found, request, document, code)
    if request.output is None:
        put(text if request.form == "md" else any_encoding(text))
        return code
    write_whole(request.output, text)
    word = found.outcome.verdict
    print(f"compilescope: {word}; wrote {request.output}", file=sys.stderr)
    return code


def _drawn(found: VerifiedChange, request: VerifyRequest, document: Document, code: int) -> str:
    if request.form == "json":
        return plain_json(_value(found, request, code), indent=2) + "\n"
    if request.form == "sarif":
        from compilescope.report.render.sarif import to_sarif

        return to_sarif([document])
    if request.form == "md":
        return markdown(document)
    from compilescope.report.render.terminal import to_text

    colour = has_colour(sys.stdout) and request.output is None
    return to_text(document, width=report_width(), colour=colour)


def _document(found: VerifiedChange, request: VerifyRequest) -> Document:
    outcome, target = found.outcome, request.target
    command = " ".join(" ".join(target.shown).split())
    record = ShownRun(run=found.run, command=target.shown, cwd=str(target.cwd))
    document = change_document(
        outcome,
        root=target.root,
        record=record,
        subtitle=f"{command} · {outcome.name}",
        next=tuple(_next(found)),
    )
    return msgspec.structs.replace(document, findings=tuple(_findings(found)))


def _next(found: VerifiedChange) -> Iterator[tuple[str, str]]:
    if found.outcome.new and found.run:
        yield "Why each of them happens:", shlex.join(["compilescope", "explain", found.run])
    if found.run:
        yield "For details:", shlex.join(["compilescope", "report", found.run])


def _findings(found: VerifiedChange) -> Iterator[Finding]:
    """For scanners: the new causes, and a change of what the program does as one more."""
    from compilescope.knowledge.findings.finding import WordedFinding
    from compilescope.record.fingerprint import fingerprint

    outcome = found.outcome
    if outcome.verdict in ("changed", "unknown"):
        changed = outcome.verdict == "changed"
        yield WordedFinding(
            kind="difference",
            rule_id=f"verify/{outcome.verdict}",
            fingerprint=fingerprint(f"verify {outcome.verdict}", None, ""),
            title="The change alters what the program does"
            if changed
            else "The change could not be verified",
            message=outcome.reason,
            level="error" if changed else "warning",
            file=found.files[0] if found.files else "",
            line=1,
        )
    yield from found.new


def _value(found: VerifiedChange, request: VerifyRequest, code: int) -> dict[str, Any]:
    outcome = msgspec.structs.asdict(found.outcome)
    return {
        "run": found.run or None,
        "command": request.target.shown,
        "root": request.target.root,
        **{name: outcome[name] for name in ("verdict", "reason", "name")},
        **{name: value for name, value in outcome.items() if name not in ("verdict", "reason")},
        "files": found.files,
        "exit_code": code,
    }
