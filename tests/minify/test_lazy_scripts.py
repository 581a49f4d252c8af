"""Scripts for breaks of torch_xla's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.change.minify.logged_program import OwnProgram
from compilescope.change.minify.logged_repros import MISSING, write_log_repros
from compilescope.logs.reader import read_logs
from compilescope.record.bodies import ReproWritten
from compilescope.record.run import read_run
from logs.consoles import GOLDEN


def written(name: str, folder: Path) -> tuple[Path, list[ReproWritten]]:
    run = read_logs([str(GOLDEN / f"{name}.log.xz")], folder).path
    write_log_repros(run)
    return run, [body for _, body in read_run(run).of(ReproWritten)]


def test_a_sync_and_a_read_have_a_script(tmp_path: Path) -> None:
    run, told = written("xla_lazy.c06_markstep_loop", tmp_path)
    assert [body.reason for body in told] == [MISSING, MISSING]
    texts = [(run / body.path).read_text() for body in told]
    assert {"Another shape" in text for text in texts} == {True, False}
    for text in texts:
        assert f"Unverified: {MISSING}." in text
        compile(text, "repro.py", "exec")


def test_an_operator_has_none_and_says_why(tmp_path: Path) -> None:
    _, told = written("flags.c05_openxla_PT_XLA_DEBUG1", tmp_path)
    assert {(body.path, body.reason) for body in told} == {
        ("", "it needs torch_xla, and the log has no arguments of the operator")
    }


@pytest.mark.slow
@pytest.mark.torch
def test_without_torch_xla_it_could_not_run(tmp_path: Path) -> None:
    run, told = written("xla_lazy.c02_item", tmp_path)
    done = subprocess.run([sys.executable, run / told[0].path], capture_output=True, timeout=300)
    assert done.returncode == 2


def test_no_program_is_run_for_what_only_torch_xla_shows(tmp_path: Path) -> None:
    script = tmp_path / "c06_markstep_loop.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    log = GOLDEN / "xla_lazy.c06_markstep_loop.log.xz"
    run = read_logs([str(log)], tmp_path / "runs").path
    made = write_log_repros(run, program=OwnProgram(str(script), for_a_device=True))
    assert not made.own and not made.missing
    assert all(why.startswith("it only shows on torch_xla") for _, why in made.stock)
    assert all(why.endswith(f"unverified: {MISSING}") for _, why in made.stock)
    assert not (tmp_path / "ran").exists()
