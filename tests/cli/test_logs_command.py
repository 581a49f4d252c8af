"""`compilescope logs`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from commands import called
from logs.traces import GOLDEN, golden

TRACE = str(GOLDEN / "torch_trace_eager.log.xz")


def command(*words: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    program = [sys.executable, "-m", "compilescope", *words]
    return subprocess.run(program, input=given, capture_output=True, timeout=600)


def test_summary_then_every_view(tmp_path: Path) -> None:
    done = command("logs", TRACE, "--dir", str(tmp_path))
    assert done.returncode == 0
    assert b"Graph breaks  at least 3" in done.stdout
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert not list(run.glob(".*"))
    for words in (["show"], ["report", "--format", "md"], ["explain"], ["list"]):
        assert called(*words, "--dir", tmp_path).returncode == 0, words
    assert called("check", "--run", run.name, "--dir", tmp_path).returncode == 1
    assert called("compare", run.name, run.name, "--dir", tmp_path).returncode == 0


def test_report_in_a_file(tmp_path: Path) -> None:
    for name in ("r.html", "r.md", "r.json"):
        out = tmp_path / name
        done = command("logs", TRACE, "--report", str(out), "--dir", str(tmp_path / "runs"))
        assert done.returncode == 0, done.stderr
        assert done.stdout == b""
        assert b"model.py:25" in out.read_bytes()


def test_json_from_standard_input(tmp_path: Path) -> None:
    done = command("logs", "-", "--json", "--dir", str(tmp_path), given=golden("eager"))
    answers = json.loads(done.stdout)
    assert answers["log"]["formats"] == ["torch_trace"]
    assert (answers["graphs"], answers["recompiles"], answers["unread"]) == (8, 4, 0)
    assert {(b["line"], b["gb_id"]) for b in answers["breaks"]} == {
        (15, "GB0170"), (17, "GB0059"), (25, "GB0124"),
    }  # fmt: skip


def test_what_a_user_may_do_wrong(tmp_path: Path) -> None:
    for words in (["logs"], ["logs", "absent.log"], ["logs", TRACE, "--report", "report.xyz"]):
        done = called(*words, *(["--dir", tmp_path] if len(words) > 1 else []), cwd=tmp_path)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr


def test_damage_is_said(tmp_path: Path) -> None:
    log = tmp_path / "t.log"
    log.write_bytes(golden("eager").replace(b'{"dynamo_start": {', b'{"dynamo_start": {{', 2))
    done = command("logs", str(log), "--dir", str(tmp_path / "runs"))
    assert done.returncode == 0
    assert b"2 records or lines could not be read" in done.stderr
