"""A live capture and its own console log, read back, agree on every program of the zoo.

Each program runs once, with both on; those of the default tests with a TORCH_TRACE too, which
`test_zoo_traces` says more of. Where they differ, it is by what the log lacks, and `LACKS`
says what that is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.record.run import read_run
from logs.consoles import read
from logs.test_zoo_traces import DOZEN, NOT_IN_LOGS, OTHER_LINES
from logs.test_zoo_traces import check as check_trace
from zoo.truth import PROGRAMS, all_programs

pytestmark = pytest.mark.torch

FORMAT = "%(levelname)-8s|%(message)s"
ALL = {"TORCH_LOGS": "+dynamo,recompiles,guards"}
LACKS: dict[str, dict[str, str]] = {
    "breaks": {
        "several_on_one_line": "torch logs a second break of a type on a line without column.",
    },
    "eager": {
        "config_disable": "The line that tells of the skipped frame has no line number.",
        "dispatch_mode": "The line that tells of the skipped frame has no line number.",
        **NOT_IN_LOGS,
    },
    "failures": dict.fromkeys(
        (
            "backend_error",
            "backward_error",
            "captured_scalar_index",
            "fullgraph_data_dependent_if",
            "fullgraph_guard",
            "fullgraph_in_callee",
            "fullgraph_limit",
            "fullgraph_print",
            "limit_as_error",
            "recompile_as_error",
        ),
        "The program catches the exception: nothing prints it, and torch logs no refusal.",
    ),
}
"""Where the log with all flags on says less than the live capture, and why."""


def places(seen: Digest, columns: bool) -> dict[tuple[Any, ...], BreakFinding]:
    return {
        (s.gb_type, s.gb_id, s.file, s.line, *([s.column] if columns else [])): s
        for s in seen.sites
    }


def check_places(live: Digest, logged: Digest, name: str) -> None:
    told, truth = (list(places(one, columns=False)) for one in (logged, live))
    if name in OTHER_LINES:
        told, truth = ([place[:-1] for place in one] for one in (told, truth))
    assert Counter(told) == Counter(truth)


def facts(seen: Digest, *, lines: bool = True) -> dict[str, Any]:
    """What the two must agree on; without `lines`, wherever in a file a break is. Columns are
    compared apart: not every log has them."""
    return {
        "breaks": Counter(
            (s.file, s.line if lines else None, s.gb_type, s.gb_id, s.outcome, s.wrappers, s.events)
            for s in seen.sites
        ),
        "recompiles": {
            (f.file, f.line, f.function, f.resumed_at, f.count, f.limit_hit)
            for f in seen.recompiles
        },
        "causes": {
            (f.line, c.subject, c.expected, c.actual) for f in seen.recompiles for c in f.causes
        },
        "eager": {(f.file, f.line, f.function, f.reason, f.rest_only) for f in seen.eager_frames},
        "failures": {(f.error, f.gb_type, f.file, f.line) for f in seen.failures},
        "graphs": (seen.graphs, seen.graph_ops, seen.regions),
        "hidden": seen.hidden_breaks_possible,
    }


def run_with_both(folder: Path, programs: list[Path], flags: dict[str, str]) -> None:
    script = Path(__file__).parent / "logged_programs.py"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TORCH")}
    for at in range(0, len(programs), 40):
        command = [sys.executable, str(script), str(folder), *map(str, programs[at : at + 40])]
        done = subprocess.run(
            command, env=environment | flags, capture_output=True, text=True, timeout=1800
        )
        assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="session")
def dozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logged-dozen")
    run_with_both(folder, [PROGRAMS / f"{name}.py" for name in DOZEN], ALL)
    return folder


def zoo_under(factory: pytest.TempPathFactory, flags: dict[str, str]) -> Path:
    folder = factory.mktemp("logged-zoo")
    run_with_both(folder, list(all_programs()), flags)
    return folder


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo_under(tmp_path_factory, ALL)


@pytest.fixture(scope="session")
def breaks_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo_under(tmp_path_factory, {"TORCH_LOGS": "graph_breaks,recompiles"})


@pytest.fixture(scope="session")
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo_under(tmp_path_factory, ALL | {"TORCH_LOGS_FORMAT": FORMAT})


def both(folder: Path, name: str) -> tuple[Digest, Digest]:
    (captured,) = (folder / name / "run").glob("*-capture")
    run, tally = read((folder / name / "console.log").read_bytes())
    assert tally.unread == 0, tally.samples
    return digest(read_run(captured)), digest(run)


def check(folder: Path, name: str, *, without: tuple[str, ...] = ()) -> None:
    live, logged = both(folder, name)
    expected, found = (facts(one, lines=name not in OTHER_LINES) for one in (live, logged))
    for key in expected:
        if key in without:
            continue
        if name in LACKS.get(key, {}):
            # Breaks lack only columns, which are compared below.
            assert key == "breaks" or expected[key] != found[key], f"{key}: no longer lacking"
        else:
            assert found[key] == expected[key], key
    columns = {site.column for site in logged.sites} - {None}
    if columns and name not in LACKS["breaks"] and name not in OTHER_LINES:
        known = {key for key in places(logged, columns=True) if key[-1] is not None}
        assert known <= places(live, columns=True).keys()


@pytest.mark.parametrize("name", DOZEN)
def test_dozen(dozen: Path, name: str) -> None:
    check(dozen, name)


@pytest.mark.parametrize("name", DOZEN)
def test_the_traces_of_a_dozen(dozen: Path, name: str, tmp_path: Path) -> None:
    check_trace(dozen, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.stem for path in all_programs()])
def test_everything(everything: Path, name: str) -> None:
    check(everything, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.stem for path in all_programs()])
def test_custom_format(formatted: Path, name: str) -> None:
    """No compile ids: repeated causes and recompiled frames are still the same."""
    live, logged = both(formatted, name)
    check_places(live, logged, name)
    assert facts(logged)["recompiles"] == facts(live)["recompiles"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.stem for path in all_programs()])
def test_breaks_and_recompiles_alone(breaks_alone: Path, name: str) -> None:
    live, logged = both(breaks_alone, name)
    check_places(live, logged, name)
    if name == "recompile_as_error":
        # Nothing tells that the recompile was refused: the log has no line of its beginning.
        assert [frame.count for frame in logged.recompiles] == [1]
        return
    counted = {(f.file, f.count, f.limit_hit) for f in logged.recompiles}
    assert counted == {(f.file, f.count, f.limit_hit) for f in live.recompiles}
