"""How `check` gives its judgement: to people, to GitHub, as JSON, and into files."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.options import write_whole
from compilescope.apps.cli.output import told_text
from compilescope.apps.cli.streams import put, put_json
from compilescope.base.errors import ToolError
from compilescope.base.outputs import check_output, is_report
from compilescope.base.settings import github_workspace
from compilescope.base.texts import without_commands

if TYPE_CHECKING:
    from compilescope.knowledge.analysis.gate.verdict import AcceptedFinding, Judgement
    from compilescope.report.blocks import Document
    from compilescope.report.section import Reading

EXIT_CODES = {"pass": 0, "fail": 1, "unknown": 2}


@dataclass(frozen=True)
class OutputForms:
    """Which forms were asked for."""

    as_json: bool = False
    annotations: bool = False
    junit: Path | None = None
    sarif: Path | None = None
    force: bool = False
    after_program: bool = False
    """The program may have left an unfinished line on our stdout."""
    everything: bool = False
    """Not two screens of it."""

    def check(self) -> None:
        """Say what cannot be written before the program runs, not after."""
        for path in (self.junit, self.sarif):
            if path is not None:
                check_output(path, force=self.force, ours=is_report)


@dataclass
class WrittenFiles:
    """What was written, and what could not be."""

    written: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def write(self, kind: str, path: Path, text: str) -> None:
        try:
            write_whole(path, text)
            self.written[kind] = str(path)
        except ToolError as error:
            self.problems.append(error.message)

    def exit_code(self, code: int) -> int:
        """A file that is missing is no pass; what failed has failed all the same."""
        for problem in self.problems:
            print(f"compilescope: error: {problem}", file=sys.stderr)
        return 2 if self.problems and code == 0 else code


def write_files(
    wanted: OutputForms,
    judgement: Judgement,
    reading: Reading,
    *,
    own: bool,
    baseline: tuple[AcceptedFinding, ...] | None,
) -> WrittenFiles:
    files = WrittenFiles()
    if wanted.junit is not None:
        from compilescope.report.render.junit import to_junit

        files.write("junit", wanted.junit, to_junit(judgement, reading.root))
    if wanted.sarif is not None:
        from compilescope.report.render.sarif import to_sarif

        document = _scanned(reading, own=own, baseline=baseline)
        files.write("sarif", wanted.sarif, to_sarif([document]))
    return files


def _scanned(
    reading: Reading, *, own: bool, baseline: tuple[AcceptedFinding, ...] | None
) -> Document:
    """All findings, those that the baseline accepts too: a scanner keeps its own account."""
    from compilescope.knowledge.analysis.findings import findings
    from compilescope.report.blocks import Document
    from compilescope.report.document import record_of

    found = tuple(f for f in findings(reading.digest) if f.own or not own)
    accepted = None if baseline is None else tuple(known.fingerprint for known in baseline)
    return Document(
        f"compilescope check {reading.digest.run}",
        "",
        (),
        findings=found,
        root=reading.root,
        record=record_of(reading),
        site=reading.pages.site if reading.pages else "",
        accepted=accepted,
    )


def say(
    wanted: OutputForms, judgement: Judgement | None, document: Document, value: Any, rest: str = ""
) -> None:
    """The judgement on stdout, after all that the program wrote there; `rest` is the command that
    shows what two screens have no room for."""
    lines = ["\n"] if wanted.after_program else []
    if not wanted.as_json:
        lines.append(_text(document, "" if wanted.everything else rest, wanted.annotations))
    if wanted.annotations and judgement is not None:
        from compilescope.report.render.annotations import to_annotations

        lines.append(to_annotations(judgement, github_workspace()))
    put("".join(lines), commands=wanted.annotations)
    if wanted.as_json:
        put_json(value)


def _text(document: Document, rest: str, guarded: bool) -> str:
    text = told_text(document, rest)
    # The text quotes the user's lines, and stands beside commands.
    return without_commands(text) if guarded else text
