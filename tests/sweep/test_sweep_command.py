"""`compilescope sweep` on real programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import called
from sweep.sweep_programs import HANG, QUICK, STATES, TORCH, compilescope, swept, write_programs
from waiting import until


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, dict[str, Any]]:
    """A sweep over programs without torch, one for each state."""
    folder = tmp_path_factory.mktemp("quick")
    write_programs(folder, QUICK)
    limits = ("--limit", "280", "--memory", "0.3")
    return folder, *swept(folder, "list.txt", "--jobs", "2", *limits)


def test_every_job_ends_in_one_state_with_its_reason(quick: Any) -> None:
    _, status, value = quick
    assert status == 1
    jobs = {job["name"]: job for job in value["jobs"]}
    assert {name: job["state"] for name, job in jobs.items()} == STATES
    assert list(jobs) == [Path(name).stem for name in QUICK], "in the order of the list"
    assert "no data" in jobs["wrong"]["reason"] and "gave up" in jobs["three"]["reason"]
    assert "SIGSEGV" in jobs["crash"]["reason"]
    reason = "No process of this program imported torch: there was nothing to record."
    assert jobs["fine"]["reason"] == reason
    assert jobs["fine"]["graphs"] is None, "unknown is not zero"
    assert value["pass_rate"] == 1 / 5
    assert all(job["seconds"] > 0 and job["overhead_seconds"] > 0 for job in jobs.values())


def test_a_program_without_an_end_meets_the_time_limit(tmp_path: Path) -> None:
    write_programs(tmp_path, {"hang.py": HANG})
    status, value = swept(tmp_path, "list.txt", "--jobs", "1", "--limit", "1")
    (job,) = value["jobs"]
    assert (status, job["state"], value["pass_rate"]) == (1, "timeout", 0)
    assert "time limit of 1 s" in job["reason"]


def asked(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command about runs that are there, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPILESCOPE_DIR", str(folder / "runs"))
        return called(*words, cwd=folder)


def test_a_sweep_is_a_run_like_any_other(quick: Any, tmp_path: Path) -> None:
    folder, _, value = quick
    run = value["run"]
    listed = asked(folder, "list").stdout
    assert "sweep list.txt --jobs 2 --limit 280 --memory 0.3" in listed
    shown = asked(folder, "show", run).stdout
    assert "1 of 5 jobs ok" in shown and "imported torch:" in shown
    assert json.loads(asked(folder, "show", run, "--json").stdout) == value
    page = tmp_path / "sweep.html"
    assert asked(folder, "report", run, "-o", str(page)).returncode == 0
    assert "1 of 5 jobs ok" in page.read_text()
    archive = tmp_path / "sweep.zip"
    assert asked(folder, "export", run, "-o", str(archive)).returncode == 0
    other = tmp_path / "other"
    other.mkdir()
    assert asked(other, "import", str(archive)).returncode == 0
    imported = json.loads(asked(other, "show", "--json").stdout)
    assert [job["state"] for job in imported["jobs"]] == list(STATES.values())
    opened = asked(other, "show", "--job", "fine")
    assert opened.returncode == 2 and "store is not on this machine" in opened.stderr


def test_the_gate_takes_a_sweep(quick: Any, tmp_path: Path) -> None:
    folder, _, value = quick
    words = ("check", "--run", value["run"], "--no-baseline")
    files = ("--junit", str(tmp_path / "j.xml"), "--sarif", str(tmp_path / "s.json"))
    ended = asked(folder, *words, *files, "--annotations")
    assert ended.returncode == 1
    assert "4 failures, at most 0 allowed" in ended.stdout
    assert (tmp_path / "j.xml").exists() and (tmp_path / "s.json").exists()


def test_one_jobs_own_run_can_be_opened(quick: Any) -> None:
    folder, _, value = quick
    shown = asked(folder, "show", value["run"], "--job", "wrong")
    assert "wrong.py" in shown.stdout, shown.stderr
    missing = asked(folder, "show", value["run"], "--job", "wron")
    assert missing.returncode == 2 and "Did you mean wrong?" in missing.stderr


def test_the_same_sweep_again_shows_no_change(quick: Any) -> None:
    folder, _, value = quick
    (folder / "short.txt").write_text("fine.py\nwrong.py\n")
    ended = compilescope(folder, "sweep", "short.txt", "--jobs", "2", "--against", value["run"])
    assert ended.returncode == 1
    assert "0 new causes" in ended.stdout and "Only in" in ended.stdout
    later = json.loads(asked(folder, "show", "--json").stdout)["run"]
    compared = asked(folder, "compare", value["run"], later, "--json")
    assert json.loads(compared.stdout)["removed"] == ["three", "crash", "greedy"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "There is nothing to sweep over."),
        (("nowhere",), "There is no file or folder nowhere."),
        (("list.txt", "--backend", "eager"), "--backend needs"),
        (("list.txt", "--address", "auto"), "--address needs --engine ray."),
        (("list.txt", "--resume"), "There is no unfinished sweep"),
        (("list.txt", "--store", "no-such-scheme://x"), "no-such-scheme"),
        (("list.txt", "--against", "nothing"), "No run in"),
    ],
)
def test_trouble_is_one_sentence_and_leaves_no_run(
    tmp_path: Path, words: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_programs(tmp_path, {"fine.py": QUICK["fine.py"]})
    monkeypatch.setenv("COMPILESCOPE_DIR", str(tmp_path / "runs"))
    ended = called("sweep", *words, cwd=tmp_path)
    assert ended.returncode == 2
    assert told in ended.stderr and "Traceback" not in ended.stderr
    assert not list(tmp_path.glob("runs/*/run.json"))


def test_stopped_and_resumed_no_job_is_lost_and_none_runs_twice(tmp_path: Path) -> None:
    """Each program notes that it began and that it ended."""
    note = "import os, time\nopen('{}', 'a').write('{}\\n')\ntime.sleep({})\nprint('done')\n"
    names = [f"p{n}" for n in range(5)]
    # The first is done at once; the second waits until somebody stops it.
    pauses = [0, 600, 0, 0, 0]
    for name, pause in zip(names, pauses, strict=True):
        log = tmp_path / f"{name}.log"
        write_programs(tmp_path, {f"{name}.py": note.format(log, name, pause)})
    (tmp_path / "list.txt").write_text("".join(f"{name}.py\n" for name in names))
    command = [sys.executable, "-m", "compilescope", "sweep", "list.txt", "--jobs", "1"]
    environment = {**os.environ, "COMPILESCOPE_DIR": str(tmp_path / "runs")}
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until((tmp_path / "p1.log").exists)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=280)
    assert process.returncode == 130, said
    assert "continue with: compilescope sweep list.txt --jobs 1 --resume" in said
    value = json.loads(compilescope(tmp_path, "show", "--json").stdout)
    assert [job["state"] for job in value["jobs"]] == ["ok", *["cancelled"] * 4]
    (tmp_path / "p1.py").write_text("print('quick now')\n")
    status, again = swept(tmp_path, "list.txt", "--jobs", "2", "--resume")
    assert status == 0 and again["run"] == value["run"]
    assert again["states"] == {"ok": 5}
    for name in names[:1] + names[2:]:
        assert (tmp_path / f"{name}.log").read_text() == f"{name}\n"


def _told(causes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What is the same in every run. Two parts of a function may recompile for one cause: which of
    them took longer, and so which line and title come first, is a matter of the day."""
    names = ("kind", "rule", "fingerprint", "file", "count")
    lines = [each["line"] if each["kind"] == "break" else None for each in causes]
    told = [(*(each[name] for name in names), line) for each, line in zip(causes, lines)]
    return sorted(told, key=str)


@pytest.mark.slow
@pytest.mark.torch
def test_findings_are_those_of_a_run(tmp_path: Path) -> None:
    write_programs(tmp_path, {"broken.py": TORCH["broken.py"]})
    status, value = swept(tmp_path, "list.txt", "--jobs", "1")
    assert status == 0
    (job,) = value["jobs"]
    ended = compilescope(tmp_path, "run", "-q", "broken.py")
    assert ended.returncode == 0
    reported = json.loads(compilescope(tmp_path, "report", "--format", "json").stdout)
    (found,) = reported["reports"]
    assert _told(job["causes"]) == _told(found["findings"])
    assert job["graphs"] == found["summary"]["graphs"]
    assert job["breaks"] == len(found["summary"]["sites"]) == 1
    assert job["recompiles"] == sum(each["count"] for each in found["summary"]["recompiles"]) > 0
    fixes = {cause["fix"] for cause in job["causes"]}
    assert "where-for-if" in fixes, "asked once for the whole sweep, at its end"
    explained = compilescope(tmp_path, "explain", value["run"], "--job", "broken").stdout
    assert "broken.py:6" in explained


@pytest.mark.torch
@pytest.mark.slow
def test_a_folder_of_torch_programs(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    write_programs(programs, TORCH | {"test_it.py": "import torch\n", "plain.py": "print(1)\n"})
    status, value = swept(tmp_path, "programs", "--jobs", "2", "--diff", "--backend", "eager")
    assert status == 1
    jobs = {job["name"]: job for job in value["jobs"]}
    assert list(jobs) == ["broken", "built", "clean", "killed", "uncompiled"]
    assert jobs["uncompiled"]["reason"].startswith("Nothing was compiled.")
    assert jobs["killed"]["state"] == "crashed"
    assert jobs["killed"]["breaks"] == 1, "what was found before it died counts"
    assert jobs["built"]["kerneldiff"] == "pass"
    assert jobs["clean"]["kerneldiff"] == "" and "no function build()" in jobs["clean"]["reason"]


@pytest.mark.torch
@pytest.mark.slow
def test_fixes_are_verified_on_request(tmp_path: Path) -> None:
    write_programs(tmp_path, {"broken.py": TORCH["broken.py"]})
    _, value = swept(tmp_path, "list.txt", "--jobs", "1", "--fix")
    assert value["jobs"][0]["fixed"] in ("verified", "partly")


@pytest.mark.torch
@pytest.mark.slow
def test_model_classes_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    words = ("--transformers", "BertModel", "--jobs", "1", "--backend", "aot_eager")
    status, value = swept(tmp_path, *words)
    assert status == 0
    (job,) = value["jobs"]
    assert (job["name"], job["state"]) == ("BertModel", "ok")
    assert job["graphs"] > 0 and job["compile_seconds"] > 0
    none = compilescope(tmp_path, "sweep", "--transformers", "NoSuchModel*")
    assert none.returncode == 2 and "NoSuchModel" in none.stderr
