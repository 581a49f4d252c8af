"""A run and a baseline as version 0.1 wrote them (`golden/`): later versions read and show them.

`fix train.py` left the run, `check --update-baseline train.py` the baseline; `show.json` is what
`show --json` printed then, without the sentences of rules and fixes, which may get better.
`outcomes.jsonl` has the events with which `diff`, `minify` and `check` say what they found out.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from builders import run_of
from compilescope.apps.cli.main import group
from compilescope.change.fixes.stored import stored_fix
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.baseline import encoded, read_baseline
from compilescope.knowledge.analysis.gate.terms import GateLimits
from compilescope.knowledge.analysis.gate.verdict import judge
from compilescope.record.bodies import FixAttempt
from compilescope.record.event import decode, encode
from compilescope.record.run import Run, read_run
from compilescope.report.document import report_document
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

GOLDEN = Path(__file__).parent / "golden"
RUN = "f00d00-train"
SENTENCES = frozenset({"why", "explanation", "hints"})
LISTS_OF_SENTENCES = frozenset({"advice", "remedy"})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    shutil.unpack_archive(GOLDEN / "run.zip", home)
    return home


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    return read_run(home / RUN)


def without_sentences(value: Any) -> Any:
    """The keys stay, also those of an advice."""
    if isinstance(value, list):
        return [without_sentences(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {}
    for key, each in value.items():
        if key in LISTS_OF_SENTENCES:
            plain[key] = sorted(each[0]) if each else []
        else:
            plain[key] = "" if key in SENTENCES else without_sentences(each)
    return plain


def test_every_event_is_read_and_written_alike(home: Path, run: Run) -> None:
    lines = [
        line
        for path in sorted((home / RUN).glob("*.jsonl"))
        for line in path.open("rb").readlines()
    ]
    assert run.unread == 0
    assert sorted(encode(event).rstrip(b"\n") for event in run.events) == sorted(
        line.rstrip(b"\n") for line in lines
    )


def test_show_prints_the_same(home: Path) -> None:
    done = CliRunner().invoke(group, ["show", RUN, "--json", "--dir", str(home)])
    assert done.exit_code == 0, done.output
    shown = without_sentences(json.loads(done.stdout))
    assert shown == json.loads((GOLDEN / "show.json").read_text())


def test_the_search_for_fixes_is_shown(home: Path) -> None:
    words = ["show", RUN, "--section", "fixes", "--format", "md", "--all", "--dir", str(home)]
    done = CliRunner().invoke(group, words)
    assert done.exit_code == 0, done.output
    assert "3 fixes verified, individually and together: graph breaks 4 -\\> 1" in done.stdout
    assert "| a warm call | 349 us | 198 us |" in done.stdout
    assert "the output no longer has the line" in done.stdout


def test_its_fix_can_be_applied(run: Run) -> None:
    fix = stored_fix(run)
    assert fix is not None and fix.whole and fix.verified
    assert fix.outcome.before.breaks == 4
    assert "+def _save_compiled(x):" in fix.diff
    kept = [body.fix for _, body in run.of(FixAttempt) if body.kept]
    assert len(kept) == 3


def test_the_baseline_accepts_what_it_was_made_of(run: Run) -> None:
    path = GOLDEN / "compilescope-baseline.json"
    baseline = read_baseline(path)
    found = judge(digest(run), GateLimits(), baseline=baseline.findings)
    assert not found.new and not found.gone
    assert len(found.known) == len(findings(digest(run))) == 7
    assert encoded(baseline) == path.read_bytes()


def test_what_commands_found_out_is_read_and_drawn() -> None:
    lines = (GOLDEN / "outcomes.jsonl").read_bytes().splitlines()
    events = [decode(line) for line in lines]
    assert [encode(event).rstrip(b"\n") for event in events] == lines
    text = to_text(report_document(Reading(run_of(*events), full=True)), width=200)
    assert "wrong operation: torch.sin (sin) at m.py:7, stage forward" in text
    assert "Repro, verified in a fresh process: /home/ada/repro.py" in text
    assert "76 -> 22 tokens" in text
    assert "FAIL: 1 graph break, at most 0 allowed." in text
