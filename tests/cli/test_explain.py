"""`compilescope explain` on a recorded run, without torch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from builders import ROOT, event, frame
from commands import called
from compilescope.record.artifacts import DiskArtifacts
from compilescope.record.bodies import (
    CacheEntryMiss,
    FailedGuard,
    GraphBreak,
    ProcessEnded,
    ProcessStarted,
    Recompile,
    SourceSeen,
)
from compilescope.record.event import encode
from compilescope.record.eventfile import EventFile
from compilescope.record.header import RunHeader
from compilescope.record.home import create_run
from compilescope.record.stack import CodeRef

SOURCE = """import torch


class Gate(torch.nn.Module):
    def forward(self, x):
        h = self.fc(x)

        if h.mean() > 0:
            h = h + 1
        return h
"""
CODE = CodeRef(f"{ROOT}/model.py", 5, "forward")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    folder = create_run(home, RunHeader(run="abc123-model", tool="0", root=ROOT, ended_ns=1))
    artifact = DiskArtifacts(folder / "artifacts").put(SOURCE, "py")
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3", frame=frame(6))
    bodies = [
        ProcessStarted(argv=("model.py",), python="3.11", torch="2.13.0", parent_pid=1),
        SourceSeen(f"{ROOT}/model.py", artifact),
        GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170", frame=CODE),
        Recompile(CODE, (CacheEntryMiss("0/0", (guard,)),)),
        ProcessEnded(),
    ]
    file, _ = EventFile.claim(folder, 0)
    for number, body in enumerate(bodies):
        stack = (frame(8),) if isinstance(body, GraphBreak) else ()
        file.write(encode(event(body, number=number, stack=stack)))
    file.close()
    return home


def explain(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return called("explain", "--dir", home, *words)


def test_the_whole_explanation(home: Path) -> None:
    done = explain(home)
    assert done.returncode == 0, done.stderr
    assert ">  8 │         if h.mean() > 0:" in done.stdout
    assert "h = torch.where(h.mean() > 0, h + 1, h)" in " ".join(done.stdout.split())
    assert "pad dimension 0 of `x`" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_one_break_by_number_and_by_place(home: Path) -> None:
    for choice in (("--break", "1"), ("--site", "model.py:8")):
        done = explain(home, *choice)
        assert done.returncode == 0 and "recompile" not in done.stdout


def test_one_cause_by_its_number(home: Path) -> None:
    first, second = explain(home, "--cause", "1").stdout, explain(home, "--cause", "2").stdout
    assert "GB0170" in first and "recompile" not in first
    assert "1 recompile" in second and "GB0170" not in second
    seen = json.loads(explain(home, "--cause", "2", "--json").stdout)
    assert len(seen["recompiles"]) == 1 and seen["sites"] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--break", "7"), "There is no break 7"),
        (("--cause", "7"), "There is no cause 7: the run has 2."),
        (("--site", "model.py:99"), "No graph break at model.py:99"),
        (("--site", "model.py"), "--site takes FILE:LINE"),
        (("--cause", "1", "--break", "1"), "do not go together"),
        (("nosuchrun",), "No run in"),
    ],
)
def test_wrong_choices_get_one_sentence(home: Path, words: tuple[str, ...], sentence: str) -> None:
    done = explain(home, *words)
    assert done.returncode == 2 and sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_json_has_what_was_promised(home: Path) -> None:
    seen = json.loads(explain(home, "--json").stdout)
    [site] = seen["sites"]
    assert site["category"] == "data-dependent-branch"
    assert site["why"] and site["consequence_of"] is None and site["lost_ms"] is None
    assert {remedy["kind"] for remedy in site["remedy"]} <= {
        "source", "upgrade", "judgement",
    }  # fmt: skip
    assert seen["coverage"] is None


def test_the_dry_run_shows_what_would_be_sent(home: Path) -> None:
    done = explain(home, "--llm-dry-run")
    assert done.returncode == 0
    assert "if h.mean() > 0" in done.stdout and "system message" in done.stdout
    assert ROOT not in done.stdout


def test_without_a_model_one_sentence_and_our_own_words(home: Path) -> None:
    done = explain(home, "--llm")
    assert done.returncode == 0
    assert "no answer from the model" in done.stderr and "Why:" in done.stdout
