"""The pytest plugin, in real pytest runs on files of their own."""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders import event, frame, run_of
from compilescope.apps.pytest_plugin.marker import TestLimits, read_marker
from compilescope.apps.pytest_plugin.summary import drawn, shortfall, summary_blocks, tallies
from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.gate.verdict import GateLimits
from compilescope.record.bodies import (
    CompileFailed,
    GraphBreak,
    GraphCaptured,
    ProcessStarted,
    ToolFault,
)
from compilescope.record.eventfile import event_files
from compilescope.record.header import read_header
from compilescope.record.run import Run
from recorder.harness import environment, finish, latest_folder, latest_run, start

MODEL = """
import torch


def broken(x):
    y = x.sin()
    if y.sum() > 0:
        return y + 1
    return y - 1


@torch.compile(backend="eager")
def clean(x):
    return (x * 2).relu()


def run(function, *sizes):
    compiled = torch.compile(function, backend="eager")
    for size in sizes or (3,):
        compiled(torch.ones(size))
"""

LIMITS = """
import unittest

import pytest

import model
from model import broken, clean, run
import torch

limits = pytest.mark.compile_limits


@limits(breaks=0, graphs=1)
def test_exceeded():
    run(broken)


@limits(breaks=1, graphs=2)
def test_within():
    run(broken)


@limits(recompiles=0)
def test_recompiles():
    run(clean, 3, 4)


@limits
def test_first_use():
    clean(torch.ones(3))


@limits
def test_second_use_compiles_anew():
    clean(torch.ones(3))


@limits(fresh=False)
def test_compiled_before():
    clean(torch.ones(3))


@limits(breaks=0)
def test_nothing():
    pass


@limits(breaks=0, allow_nothing=True)
def test_nothing_allowed():
    pass


@limits(breaks=0)
@pytest.mark.xfail(strict=True)
def test_expected_to_exceed():
    run(broken)


@limits(breaks=0)
def test_own_failure():
    run(broken)
    assert not "its own failure"


@limits(breaks=0)
def test_skipped_inside():
    run(broken)
    pytest.skip("no")


@limits(breaks=0)
@pytest.mark.skip
def test_skipped():
    pass


@limits(coverage=100)
def test_coverage():
    run(broken, *[3] * 20)


@limits(coverage=1)
def test_not_timed_enough():
    run(broken)


@pytest.fixture
def warm():
    run(broken)


@limits(breaks=0)
def test_setup_counts(warm):
    pass


@pytest.fixture
def cleanup():
    yield
    run(broken)


@limits(breaks=0)
def test_teardown_does_not(cleanup):
    clean(torch.ones(3))


@limits(breaks=0)
class TestClosest:
    def test_of_the_class(self):
        run(broken)

    @limits(breaks=1)
    def test_of_its_own(self):
        run(broken)


@limits(breaks=0)
class OldStyle(unittest.TestCase):
    def test_exceeded(self):
        run(broken)

    def test_own_failure(self):
        run(broken)
        self.fail("its own failure")

    def test_skipped(self):
        run(broken)
        self.skipTest("no")

    def test_within(self):
        clean(torch.ones(3))


def test_fixture(compilescope_run):
    assert not compilescope_run.graphs
    run(broken)
    [site] = compilescope_run.breaks
    assert (site.line, site.function) == (7, "broken")
    assert len(compilescope_run.graphs) == 2
    assert not compilescope_run.recompiles and not compilescope_run.failures
    assert "Graph breaks  1  reported once" in compilescope_run.summary()


def test_fixture_sees_its_own_test_only(compilescope_run):
    clean(torch.ones(3))
    assert len(compilescope_run.graphs) == 1
    assert not compilescope_run.breaks
    assert compilescope_run.run.torch_version


def test_fixture_asked_for_late(request):
    run(broken)
    seen = request.getfixturevalue("compilescope_run")
    run(broken)
    assert len(seen.breaks) == 1


@pytest.fixture
def reader(compilescope_run):
    yield
    assert len(compilescope_run.breaks) == 1


def test_fixture_read_in_teardown(reader):
    run(broken)


def test_a_capture_of_the_users_own():
    import compilescope

    torch.compiler.reset()
    with compilescope.capture() as seen:
        run(broken)
    assert len(seen.breaks) == 1


@pytest.mark.parametrize("n", ["a (b) [c]", "ü::/ x"])
def test_odd_names(n):
    torch.compiler.reset()
    run(broken)
"""

EXCEEDING = {
    "test_exceeded": "1 graph break, at most 0 allowed; 2 graphs, at most 1 allowed",
    "test_recompiles": "1 recompile, at most 0 allowed",
    "test_compiled_before": "Inconclusive: nothing was compiled in this test",
    "test_nothing": "Inconclusive: nothing was compiled in this test",
    "test_own_failure": "its own failure",
    "test_coverage": "% of the time inside graphs, at least 100 % required",
    "test_not_timed_enough": "Inconclusive: coverage was not measured",
    "test_setup_counts": "1 graph break, at most 0 allowed",
    "TestClosest.test_of_the_class": "1 graph break, at most 0 allowed",
    "OldStyle.test_exceeded": "1 graph break, at most 0 allowed",
    "OldStyle.test_own_failure": "its own failure",
}
SKIPPED = {
    "test_expected_to_exceed",
    "test_skipped_inside",
    "test_skipped",
    "OldStyle.test_skipped",
}


def command(*words: str) -> list[str]:
    """pytest with the plugin: by its entry point where that is installed, else by its name.

    Without plugins that take longer to import than these tests to run.
    """
    entries = importlib.metadata.entry_points(group="pytest11")
    known = any(entry.value.startswith("compilescope.") for entry in entries)
    plugin = [] if known else ["-p", "compilescope.apps.pytest_plugin"]
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:logging",
            "-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:anyio",
            *plugin, "--strict-markers", *words]  # fmt: skip


def run_pytest(folder: Path, *words: str, **env: str) -> tuple[int, str]:
    """The exit status, and what was printed."""
    # pytest compiles what it loads of ours in its own way: once, even where Python must keep none.
    given = {"COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "", **env}
    ended = finish(start(command(*words), cwd=folder, env=given))
    return ended.status, (ended.stdout + ended.stderr).decode()


def write(folder: Path, **files: str) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "model.py").write_text(MODEL)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def section(output: str) -> str:
    """What stands under our heading, up to pytest's next one."""
    return re.split(r"^=+ compilescope =+\n", output, flags=re.M)[1].split("\n==", 1)[0]


def failures_in(junit: Path) -> dict[str, str]:
    """Test -> the text of its failure; skipped and expected failures left out."""
    found = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}".removeprefix("test_limits.")
        for kind in ("failure", "error"):
            for failure in case.iter(kind):
                found[name] = f"{failure.get('message')}\n{failure.text}"
    return found


def skipped_in(junit: Path) -> set[str]:
    return {
        f"{case.get('classname')}.{case.get('name')}".removeprefix("test_limits.")
        for case in ElementTree.parse(junit).iter("testcase")
        if case.find("skipped") is not None
    }


# Without torch


def test_it_is_silent_until_used(tmp_path: Path) -> None:
    write(tmp_path, test_plain="def test_a():\n    pass\n")
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    assert 'compilescope.apps.pytest_plugin' in sys.modules\n"
        "    heavy = [m for m in ('torch', 'msgspec', 'rich', 'click') if m in sys.modules]\n"
        "    ours = [m for m in sys.modules if m.startswith('compilescope.')]\n"
        "    assert not heavy, heavy\n"
        "    assert sorted(ours) == ['compilescope.apps', 'compilescope.apps.pytest_plugin',"
        " 'compilescope.base', 'compilescope.base.version'], ours\n"
    )
    status, output = run_pytest(tmp_path)
    assert status == 0, output
    # Where it is installed, pytest's own header lists it among the plugins.
    said = [line for line in output.splitlines() if not line.startswith("plugins: ")]
    assert "compilescope" not in "\n".join(said)
    assert not (tmp_path / ".compilescope").exists()


def test_a_skipped_test_with_limits_needs_no_torch(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.compile_limits(breaks=0)\n@pytest.mark.skip\n"
    write(tmp_path, test_skipped=text + "def test_a():\n    pass\n")
    (tmp_path / "conftest.py").write_text(
        "import sys\ndef pytest_unconfigure():\n    assert 'torch' not in sys.modules\n"
    )
    status, output = run_pytest(tmp_path)
    assert status == 0, output
    assert "1 skipped" in output


WRONG = """
import pytest

limits = pytest.mark.compile_limits


@limits(break_=0)
def test_unknown():
    pass


@limits(breaks=-1)
def test_negative():
    pass


@limits(breaks="0")
def test_no_number():
    pass


@limits(breaks=True)
def test_truth():
    pass


@limits(0)
def test_without_name():
    pass

"""
FAULTS = (
    "test_wrong.py::test_unknown: the marker compile_limits: there is no 'break_'. "
    "Did you mean 'breaks'?",
    "test_wrong.py::test_negative: the marker compile_limits: breaks must be 0 or more, not -1.",
    "test_wrong.py::test_no_number: the marker compile_limits: breaks must be a whole number, "
    "not '0'.",
    "test_wrong.py::test_truth: the marker compile_limits: breaks must be a whole number, "
    "not True.",
    "test_wrong.py::test_without_name: the marker compile_limits: it takes limits by keyword",
)


def test_wrong_markers_are_usage_errors(tmp_path: Path) -> None:
    write(tmp_path, test_wrong=WRONG)
    status, output = run_pytest(tmp_path)
    assert status == pytest.ExitCode.USAGE_ERROR
    for fault in FAULTS:
        assert fault in output
    assert "Traceback" not in output and "no tests ran" in output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"coverage": 101}, "coverage must be between 0 and 100, not 101."),
        ({"coverage": "much"}, "coverage must be a percentage, not 'much'."),
        ({"fresh": 1}, "fresh must be True or False, not 1."),
        ({"own": "yes"}, "own must be True or False, not 'yes'."),
    ],
)
def test_wrong_values(given: dict[str, Any], said: str) -> None:
    mark = SimpleNamespace(args=(), kwargs=given)
    item: Any = SimpleNamespace(nodeid="t.py::test_a", get_closest_marker=lambda name: mark)
    with pytest.raises(ToolError) as error:
        read_marker(item)
    assert error.value.message == f"t.py::test_a: the marker compile_limits: {said}"


@pytest.mark.slow
def test_wrong_markers_under_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    write(tmp_path, test_wrong=WRONG)
    status, output = run_pytest(tmp_path, "-n", "1")
    assert status == pytest.ExitCode.TESTS_FAILED
    # pytest's summary repeats a fault, in full when $CI is set.
    errors, _, _ = output.partition(" short test summary info ")
    for fault in FAULTS:
        assert errors.count(fault) == 1
    assert "5 errors" in output


def test_without_torch_there_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, test_plain="def test_a():\n    pass\n")
    status, output = run_pytest(tmp_path, "--compilescope")
    assert status == 0
    assert section(output) == "Nothing was compiled: no test imported torch."


@pytest.mark.parametrize(
    "word", ["--collect-only", pytest.param("--fixtures", marks=pytest.mark.slow)]
)
def test_what_runs_no_test_leaves_no_run(tmp_path: Path, word: str) -> None:
    write(tmp_path, test_plain="def test_a():\n    pass\n")
    status, output = run_pytest(tmp_path, "--compilescope", word)
    assert status == 0, output
    assert "= compilescope =" not in output
    assert not (tmp_path / ".compilescope").exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    write(tmp_path, test_plain="def test_a():\n    pass\n")
    (tmp_path / "file").write_text("")
    status, output = run_pytest(tmp_path, "--compilescope", "--compilescope-dir", "file")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "Choose another folder with --compilescope-dir." in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("max-breaks = -1", "max-breaks"),
        *(
            pytest.param(table, said, marks=pytest.mark.slow)
            for table, said in (("max-break = 1", "max-breaks"), ("baseline = 'x'", "x"))
        ),
    ],
)
def test_a_check_without_sense_is_a_usage_error(tmp_path: Path, table: str, said: str) -> None:
    write(tmp_path, test_plain="def test_a():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text(f"[tool.compilescope]\n{table}\n")
    status, output = run_pytest(tmp_path, "--compilescope-check")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert said in output and "Traceback" not in output
    assert not (tmp_path / ".compilescope").exists()


def test_a_check_that_cannot_tell_fails(tmp_path: Path) -> None:
    write(tmp_path, test_plain="def test_a():\n    pass\n")
    status, output = run_pytest(tmp_path, "--compilescope-check", "-q")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "Check inconclusive: none of the program's processes imported torch." in output
    assert "1 passed" in output


@pytest.mark.parametrize(
    "words", [("-p", "no:terminal"), pytest.param(("--no-summary",), marks=pytest.mark.slow)]
)
def test_a_check_gives_its_reason_without_a_terminal(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    write(tmp_path, test_plain="def test_a():\n    pass\n")
    status, output = run_pytest(tmp_path, "--compilescope-check", *words)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "compilescope: Check inconclusive" in output


# Tallies, on runs made by hand


def broken_in(test: str | None, line: int = 8, **fields: object):
    place = frame(line, source=f"        if h{line}.mean() > 0:")
    return event(GraphBreak("broke"), stack=(place,), test=test, **fields)


def graph_in(test: str | None, **fields: object):
    return event(GraphCaptured("dynamo"), test=test, **fields)


def test_most_costly_tests_come_first() -> None:
    run = run_of(
        graph_in("t.py::clean"),
        broken_in("t.py::once"),
        broken_in("t.py::twice"),
        broken_in("t.py::twice", 9),
        event(CompileFailed("RuntimeError", "no"), test="t.py::failed"),
        broken_in(None),
    )
    found = tallies(run)
    assert [t.test for t in found][:2] == ["t.py::failed", "t.py::twice"]
    assert {t.test for t in found[2:4]} == {"t.py::once", None}
    assert found[-1].test == "t.py::clean" and not found[-1].lost


def test_the_same_test_in_several_workers_is_told_once() -> None:
    started = ProcessStarted(argv=(), python="3", torch="2", parent_pid=1)
    run = run_of(
        broken_in("t.py::a"),
        event(started, pid=200),
        broken_in("t.py::a", pid=200),
    )
    [tally] = tallies(run)
    assert (tally.test, tally.breaks) == ("t.py::a", 1)


def test_a_forked_child_works_for_its_test() -> None:
    forked = ProcessStarted(argv=(), python="3", torch="2", parent_pid=100, forked=True)
    run = run_of(
        broken_in("t.py::a"),
        event(forked, pid=200, test="t.py::a"),
        broken_in("t.py::a", 9, pid=200),
    )
    [tally] = tallies(run)
    assert tally.breaks == 2


def test_the_list_of_tests_is_bounded() -> None:
    run = run_of(*(broken_in(f"t.py::test[{n}]", n) for n in range(30)))
    text = drawn(summary_blocks(run, 0))
    assert text.count("t.py::test") == 10
    assert "and 20 more tests; -v lists all" in text and "and 25 more causes" in text
    assert drawn(summary_blocks(run, 1)).count("t.py::test") == 30
    assert len(drawn(summary_blocks(run, -1)).splitlines()) == 1


def test_only_causes_of_ones_own_count_where_wanted() -> None:
    place = frame(file="/x/site-packages/lib/a.py", origin="library")
    run = run_of(graph_in("t"), event(GraphBreak("broke"), stack=(place,), test="t"))
    assert "1 graph break" in shortfall(run, TestLimits(GateLimits(breaks=0)))
    assert shortfall(run, TestLimits(GateLimits(breaks=0), own=True)) == ""


@pytest.mark.parametrize("nothing", [False, True])
def test_a_fault_of_ours_makes_limits_inconclusive(nothing: bool) -> None:
    run = run_of(graph_in("t"), event(ToolFault("graph-breaks", "ValueError: no", ""), test="t"))
    wanted = TestLimits(GateLimits(breaks=0), allow_nothing=nothing)
    assert shortfall(run, wanted).startswith("Inconclusive: compilescope failed")


def test_hostile_names_stay_text() -> None:
    name = "t.py::test[\x1b[31m\x00\u202e<script>]" + "long" * 100
    text = drawn(summary_blocks(run_of(broken_in(name)), 0), width=80, colour=False)
    assert "\x1b" not in text and "\x00" not in text and "\u202e" not in text
    assert max(map(len, text.splitlines())) <= 80


# With torch


@dataclass(frozen=True)
class Outcome:
    """How the tests with limits went."""

    folder: Path
    status: int
    output: str


def outcome(folder: Path, *words: str) -> Outcome:
    write(folder, test_limits=LIMITS)
    return Outcome(folder, *run_pytest(folder, "--junitxml", "junit.xml", *words))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return outcome(tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return outcome(tmp_path_factory.mktemp("recorded"), "--compilescope")


@pytest.fixture(params=[pytest.param("alone", marks=pytest.mark.slow), "recorded"])
def limited(request: pytest.FixtureRequest) -> Outcome:
    """With and without --compilescope, what becomes of the tests must be the same."""
    return request.getfixturevalue(request.param)


@pytest.mark.torch
def test_limits_are_held_against_each_test(limited: Outcome) -> None:
    assert limited.status == pytest.ExitCode.TESTS_FAILED, limited.output
    found = failures_in(limited.folder / "junit.xml")
    assert set(found) == set(EXCEEDING), limited.output
    for name, words in EXCEEDING.items():
        assert words in " ".join(found[name].split()), name
    assert skipped_in(limited.folder / "junit.xml") == SKIPPED


@pytest.mark.torch
def test_a_failure_says_what_to_change(limited: Outcome) -> None:
    text = failures_in(limited.folder / "junit.xml")["test_exceeded"]
    assert re.search(r"1 model\.py:7 in broken +GB0170\n +if y\.sum\(\) > 0:\n +\^{11}\n", text)
    assert "The branch depends on the value of" in text
    assert "Try: " in text
    assert "Graphs: 2 from broken (model.py:5)." in text


@pytest.mark.torch
def test_the_session_is_recorded_when_asked(recorded: Outcome) -> None:
    assert "compilescope: recording into .compilescope/" in recorded.output


@pytest.mark.torch
def test_every_event_names_its_test(recorded: Outcome) -> None:
    run = latest_run(recorded.folder / ".compilescope")
    assert run.cut_short is None
    assert run.header.exit_status == 1 and run.header.ended_ns
    assert run.header.command[0] == "pytest"
    broken = {e.test for e, _ in run.of(GraphBreak)}
    assert "test_limits.py::test_odd_names[a (b) [c]]" in broken
    assert "test_limits.py::OldStyle::test_exceeded" in broken
    assert None not in broken and "test_limits.py::test_first_use" not in broken


@pytest.mark.torch
def test_the_section(recorded: Outcome) -> None:
    text = section(recorded.output)
    run = read_header(latest_folder(recorded.folder / ".compilescope")).run
    assert re.match(r"In \d+ of \d+ tests that compiled code: 1 graph break", text)
    assert re.search(r"^ +breaks +graphs +test$", text, re.M)
    assert re.search(r"^ +1 +2 +test_limits\.py::\S+$", text, re.M)
    assert re.search(r"and \d+ more tests; -v lists all", text)
    assert re.search(r"^ +\d+ +model\.py:7 Data-dependent branching$", text, re.M)
    assert f"Run {run}: compilescope show {run[:6]}" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.torch
def test_hooks_are_off_between_tests_with_limits(tmp_path: Path) -> None:
    text = """
import pytest
import torch
from compilescope.instrument.torchapi.install import find_target, all_hooks
import sys
from model import broken, run


def wrapped():
    there = [h for h in all_hooks() if h.module in sys.modules]
    found = [find_target(sys.modules[h.module], h.target) for h in there]
    return [f[1] for f in found if f and getattr(f[2], "__code__", None)
            and f[2].__code__.co_name == "wrapper"]


@pytest.mark.compile_limits(breaks=1, coverage=0)
def test_a():
    run(broken, 3, 3, 3)
    assert wrapped()


def test_b():
    assert not wrapped()


@pytest.fixture
def fails():
    assert 0


@pytest.mark.compile_limits(breaks=1)
def test_c(fails):
    pass


def test_d():
    assert not wrapped()
"""
    write(tmp_path, test_hooks=text)
    _, output = run_pytest(tmp_path)
    assert re.search(r"3 passed, (\d+ warnings?, )?1 error", output)
    # Limits alone do not record the session.
    assert "= compilescope =" not in output
    assert not (tmp_path / ".compilescope").exists()


@pytest.mark.torch
@pytest.mark.slow
def test_a_fault_of_ours_is_no_pass(tmp_path: Path) -> None:
    text = """
import pytest
import torch
from model import clean

@pytest.mark.compile_limits(breaks=0, allow_nothing=True)
def test_a():
    clean(torch.ones(3))
"""
    planting = "from recorder.faults import plant_in_program\nplant_in_program()\n"
    write(tmp_path, test_fault=text, conftest=planting)
    status, output = run_pytest(tmp_path, PYTHONPATH=str(Path(__file__).parent))
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "Inconclusive: compilescope failed" in output


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("variable", ["TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"])
def test_a_compiler_that_is_switched_off_is_no_pass(tmp_path: Path, variable: str) -> None:
    text = """
import pytest
import torch
from model import clean

@pytest.mark.compile_limits(breaks=0)
def test_a():
    clean(torch.ones(3))

@pytest.mark.compile_limits(breaks=0, allow_nothing=True)
def test_b():
    clean(torch.ones(3))
"""
    write(tmp_path, test_off=text)
    status, output = run_pytest(tmp_path, **{variable: "1"})
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "Inconclusive: nothing was compiled in this test" in output
    assert "1 failed, 1 passed" in output


CHECKED = """
import torch
from model import broken, run

def test_a():
    run(broken, 3, 3, 3)
"""


@pytest.mark.torch
@pytest.mark.slow
def test_the_check_of_a_project(tmp_path: Path) -> None:
    write(tmp_path, test_checked=CHECKED)
    status, output = run_pytest(tmp_path, "--compilescope-check")
    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "FAIL: 1 graph break, at most 0 allowed" in section(output)
    accept = re.search(r"compilescope (check --run \S+ --update-baseline)", output)
    assert accept is not None
    words = [sys.executable, "-m", "compilescope", *accept[1].split()]
    updated = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True)
    assert updated.returncode == 0, updated.stderr.decode()
    status, output = run_pytest(tmp_path, "--compilescope-check")
    assert status == 0, output
    assert "PASS" in section(output)


@pytest.mark.torch
@pytest.mark.slow
def test_the_limits_of_a_project(tmp_path: Path) -> None:
    write(tmp_path, test_checked=CHECKED)
    table = "[tool.compilescope]\nmax-breaks = 1\nmin-coverage = 100\n"
    (tmp_path / "pyproject.toml").write_text(table)
    for words in ((), ("-n", "1")):
        status, output = run_pytest(tmp_path, "--compilescope-check", *words)
        assert status == pytest.ExitCode.TESTS_FAILED
        assert "of the time inside graphs, at least 100 % required" in " ".join(output.split())
        assert re.search(r"breaks +1 +1 +ok", output)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("dist", ["load", "loadfile", "each"])
def test_one_run_under_xdist(tmp_path: Path, dist: str) -> None:
    pytest.importorskip("xdist")
    write(tmp_path, test_limits=LIMITS, test_checked=CHECKED)
    words = ("-n", "2", "--dist", dist, "--compilescope", "--junitxml", "junit.xml")
    status, output = run_pytest(tmp_path, *words)
    assert status == pytest.ExitCode.TESTS_FAILED
    # Whether its worker has run a test that compiles the same, only the scheduler knows.
    either = {"test_compiled_before"}
    assert set(failures_in(tmp_path / "junit.xml")) - either == set(EXCEEDING) - either, output
    [folder] = [path for path in (tmp_path / ".compilescope").iterdir() if path.is_dir()]
    assert len(event_files(folder)) == 2
    run = latest_run(tmp_path / ".compilescope")
    assert run.cut_short is None
    tests = {e.test for e, _ in run.of(GraphBreak)}
    assert {"test_limits.py::test_exceeded", "test_checked.py::test_a"} <= tests
    names = re.findall(r"^[ \d-]+ (test_\w+\.py::.+)$", section(output), re.M)
    assert len(names) == len(set(names)) == 10


CRASHING = """
import os
import torch
from model import broken, run

def test_before():
    run(broken)

def test_crash():
    torch.compiler.reset()
    run(broken)
    os._exit(3)

def test_after():
    torch.compiler.reset()
    run(broken)
"""


@pytest.mark.torch
@pytest.mark.slow
def test_a_worker_that_crashes_leaves_what_it_saw(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    write(tmp_path, test_crashing=CRASHING)
    _, output = run_pytest(tmp_path, "-n", "1", "--compilescope")
    text = section(output)
    assert "Truncated: process" in text
    for name in ("test_before", "test_crash", "test_after"):
        assert f"test_crashing.py::{name}" in text


@pytest.mark.torch
@pytest.mark.slow
def test_pytest_that_crashes_leaves_what_it_saw(tmp_path: Path) -> None:
    write(tmp_path, test_crashing=CRASHING)
    status, _ = run_pytest(tmp_path, "--compilescope")
    assert status == 3
    run = latest_run(tmp_path / ".compilescope")
    assert run.cut_short is not None and not run.live
    assert {e.test for e, _ in run.of(GraphBreak)} == {
        "test_crashing.py::test_before",
        "test_crashing.py::test_crash",
    }


WAITING = """
import pathlib
import time
import pytest
import torch
from model import broken, run

@pytest.mark.compile_limits(breaks=9)
def test_waiting():
    run(broken)
    pathlib.Path("ready").write_text("")
    time.sleep(100)

def test_never():
    pass
"""


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_an_interrupted_session_has_its_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    write(tmp_path, test_waiting=WAITING)
    process = start(
        command("--compilescope", *words),
        cwd=tmp_path,
        env={"COLUMNS": "80"},
        start_new_session=True,
    )
    deadline = time.monotonic() + 600
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    ended = finish(process)
    assert ended.status == pytest.ExitCode.INTERRUPTED
    run = latest_run(tmp_path / ".compilescope")
    assert {e.test for e, _ in run.of(GraphBreak)} == {"test_waiting.py::test_waiting"}
    assert run.header.exit_status == pytest.ExitCode.INTERRUPTED
    assert "test_waiting.py::test_waiting" in section(ended.stdout.decode())
    if not words:
        assert run.cut_short is None


@pytest.mark.torch
@pytest.mark.slow
def test_under_compilescope_run_nothing_is_recorded_twice(tmp_path: Path) -> None:
    write(tmp_path, test_limits=LIMITS)
    outer = [sys.executable, "-m", "compilescope", "run", "--dir", "outer", "--pytest"]
    inner = command("--compilescope", "--junitxml", "junit.xml")[3:]
    ended = finish(start([*outer, *inner], cwd=tmp_path))
    assert ended.status == pytest.ExitCode.TESTS_FAILED
    assert set(failures_in(tmp_path / "junit.xml")) == set(EXCEEDING)
    assert not (tmp_path / ".compilescope").exists()
    assert "Recorded by `compilescope run`" in section(ended.stdout.decode())
    run = latest_run(tmp_path / "outer")
    assert run.count(ProcessStarted) == 1 and run.cut_short is None
    ids = [e.id for e in run.events]
    assert len(ids) == len(set(ids))


@pytest.mark.torch
@pytest.mark.slow
def test_quiet_and_stopped_early(tmp_path: Path) -> None:
    write(tmp_path, test_limits=LIMITS, conftest="import torch\n")
    status, output = run_pytest(tmp_path, "--compilescope", "-q", "-x")
    assert status == pytest.ExitCode.TESTS_FAILED
    lines = section(output).splitlines()
    assert len(lines) == 2
    assert lines[0] == "In 1 of 1 test that compiled code: 1 graph break."
    run: Run = latest_run(tmp_path / ".compilescope")
    assert run.cut_short is None
