"""The baseline: a file that a team commits, with the causes that it accepts for now.

Made to be read in a diff: sorted, one field a line, no times, no line numbers and no paths of one
machine. Written aside and renamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.outputs import output_file
from compilescope.base.texts import escaped_json
from compilescope.knowledge.analysis.gate.verdict import AcceptedFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.fingerprint import normalised, relative_file
from compilescope.record.plain_files import read_given

SCHEMA = 1
"""Raised where an older version would misread a file; it then asks for a newer one."""
FILE_NAME = "compilescope-baseline.json"
_MEND = "Fix it, or delete it and recreate it with --update-baseline."


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """What is accepted, and the torch that it was seen with."""

    schema: int = SCHEMA
    torch: str | None = None
    findings: tuple[AcceptedFinding, ...] = ()


def baseline_of(
    found: Iterable[Finding],
    *,
    root: str,
    torch: str | None,
    before: Iterable[AcceptedFinding] = (),
) -> Baseline:
    """The baseline that accepts these findings.

    A cause that was accepted `before` keeps its entry, so that a diff shows only what changed.
    """
    kept = {(known.kind, known.fingerprint): known for known in before}
    entries = {
        (f.kind, f.fingerprint): kept.get((f.kind, f.fingerprint)) or _known(f, root) for f in found
    }
    return Baseline(torch=torch, findings=tuple(sorted(entries.values(), key=_order)))


def _known(finding: Finding, root: str) -> AcceptedFinding:
    return AcceptedFinding(
        kind=finding.kind,
        fingerprint=finding.fingerprint,
        rule=finding.rule_id,
        title=finding.title,
        file=relative_file(finding.file, root),
        function=finding.function,
        source=normalised(finding.source),
    )


def _order(known: AcceptedFinding) -> tuple[str, ...]:
    return (known.file, known.function, known.kind, known.source, known.title, known.fingerprint)


def read_baseline(path: Path) -> Baseline:
    try:
        data = json.loads(read_given(path))
    except FileNotFoundError:
        raise ToolError(
            f"There is no baseline {path}.", hint="Create it with --update-baseline."
        ) from None
    except OSError as error:
        raise ToolError(f"Cannot read the baseline {path}: {error.strerror}.") from None
    except RecursionError:
        raise ToolError(
            f"The baseline {path} is damaged: it is nested too deeply.", _MEND
        ) from None
    except ValueError as error:
        # A merge that was left in the middle is what does it most of all.
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        message = f"The baseline {path} is damaged: it is not JSON{where}."
        raise ToolError(message, _MEND) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise ToolError(f"{path} is not a compilescope baseline: it has no schema.", _MEND)
    if schema > SCHEMA:
        raise ToolError(
            f"The baseline {path} is from a newer compilescope "
            f"(schema {schema}; this one reads {SCHEMA}).",
            hint="Upgrade compilescope to use it.",
        )
    try:
        return msgspec.convert(data, Baseline)
    except UnicodeError:  # A key that is half of a character; values may be.
        raise ToolError(f"The baseline {path} is damaged: it is not UTF-8.", _MEND) from None
    except msgspec.ValidationError as error:
        raise ToolError(f"The baseline {path} is damaged: {error}.", _MEND) from None


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Whole or not at all. Through a link, the file that it leads to is written."""
    try:
        with output_file(path) as file:
            file.write(encoded(baseline))
    except OSError as error:
        raise ToolError(f"Cannot write the baseline {path}: {error.strerror}.") from None


def encoded(baseline: Baseline) -> bytes:
    """The file's text. What cannot be seen (control characters, turned text) is spelt out."""
    data = msgspec.to_builtins(baseline)
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return (escaped_json(text) + "\n").encode()
