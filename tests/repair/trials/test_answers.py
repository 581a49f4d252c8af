"""Programs of which little can be told: sensible answers, and never `verified`."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.verifier import measure, verify
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.analysis.findings import findings

pytestmark = [pytest.mark.torch, pytest.mark.slow]

_HEAD = 'import os, sys, time\nimport torch\n\n\n@torch.compile(backend="eager"{options})\n'
_BREAKS = _HEAD + (
    "def f(x, *more):\n    if x.sum() > 0:\n        x = x * 2\n    return x + 1\n\n\n{rest}"
)
_MENDED = _HEAD + (
    "def f(x, *more):\n    x = torch.where(x.sum() > 0, x * 2, x)\n    return x + 1\n\n\n{rest}"
)


def _verify(tmp_path: Path, rest: str, options: str = "", **more) -> Verification:
    file = tmp_path / "program.py"
    file.write_text(_BREAKS.format(options=options, rest=rest))
    new = _MENDED.format(options=options, rest=rest)
    with Workbench(Target("script", (str(file),)), **more) as bench:
        before = TrialBaseline(bench)
        gone = [found.fingerprint for found in findings(before.captured.digest)]
        return verify(bench, before, Version({str(file): new}), gone=gone)


def test_a_program_that_is_never_the_same(tmp_path: Path) -> None:
    rest = "print(f(torch.full((4,), float(time.time_ns() % 1000003))))\n"
    found = _verify(tmp_path, rest)
    assert found.verdict == "unverified", found
    assert "each time" in found.reason


def test_inputs_that_are_never_the_same(tmp_path: Path) -> None:
    found = _verify(tmp_path, "f(torch.full((4,), float(time.time_ns() % 1000003)))\n")
    assert found.verdict == "unverified", found
    assert "each time" in found.reason


def test_times_that_are_printed_do_not_matter(tmp_path: Path) -> None:
    rest = "t = time.time()\nf(torch.ones(4))\nprint(f'took {time.time() - t:.6f} s')\n"
    found = _verify(tmp_path, rest)
    assert found.verdict == "verified", found


def test_a_program_that_fails(tmp_path: Path) -> None:
    found = _verify(tmp_path, "f(torch.ones(4))\nraise SystemExit(3)\n")
    assert found.verdict == "unverified"
    assert "status 3" in found.reason


def test_a_program_that_never_ends(tmp_path: Path) -> None:
    rest = "f(torch.ones(4))\nwhile True:\n    time.sleep(1)\n"
    found = _verify(tmp_path, rest, limit_s=30.0)
    assert found.verdict == "unverified"
    assert "did not finish within 30 s" in found.reason


def test_no_region_is_called(tmp_path: Path) -> None:
    found = _verify(tmp_path, "print('nothing')\n")
    assert found.verdict == "unverified"
    assert found.reason == "no compiled region is called"


def test_arguments_that_cannot_be_copied(tmp_path: Path) -> None:
    rest = (
        "class Handle:\n    def __deepcopy__(self, memo):\n        raise TypeError('no copies')\n"
        "\n\nprint(f(torch.ones(4), Handle()))\n"
    )
    found = _verify(tmp_path, rest)
    assert found.verdict == "unverified", found
    assert "cannot be copied" in found.reason


def test_a_program_that_a_whole_graph_is_asked_of(tmp_path: Path) -> None:
    found = _verify(tmp_path, "print(f(torch.ones(4)))\n", ", fullgraph=True")
    assert found.verdict == "verified", found
    assert (found.before.failures, found.after.failures) == (1, 0)


def test_a_program_that_reads_its_input(tmp_path: Path) -> None:
    rest = "print(f(torch.tensor([float(line) for line in sys.stdin])))\n"
    found = _verify(tmp_path, rest, stdin=b"1\n2\n3\n")
    assert found.verdict == "verified", found


def test_an_empty_overlay_changes_nothing_that_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    text = _BREAKS.format(options="", rest="print(f(torch.ones(4)))\n")
    file.write_text(text)
    with Workbench(Target("script", (str(file),))) as bench:
        plain, same = bench.watch(Version()), bench.watch(Version({str(file): text}))
    ours, theirs = findings(plain.digest), findings(same.digest)
    assert [found.fingerprint for found in ours] == [found.fingerprint for found in theirs]
    assert [found.line for found in ours] == [found.line for found in theirs]
    assert plain.operators == same.operators
    assert plain.stdout == same.stdout


def test_times_of_two_versions(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    rest = "for _ in range(20):\n    f(torch.ones(4))\n"
    file.write_text(_BREAKS.format(options="", rest=rest))
    new = Version({str(file): _MENDED.format(options="", rest=rest)})
    with Workbench(Target("script", (str(file),))) as bench:
        times = measure(bench, Version(), new, rounds=2, cold=1)
    for timed in (times.before, times.after):
        assert timed.steady is not None
        assert timed.first is not None
        assert timed.whole is not None
        assert (timed.steady.rounds, timed.first.rounds, timed.whole.rounds) == (2, 1, 1)
        assert 0 < timed.steady.median < timed.first.median < timed.whole.median
    assert not times.reason


def test_facts_about_variables(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    file = tmp_path / "program.py"
    file.write_text(_BREAKS.format(options="", rest="print(f(torch.ones(4), 3))\n"))
    # By the name that a capture of `python ../program.py` shows.
    asked = str(tmp_path / "other" / ".." / "program.py")
    with Workbench(Target("script", (str(file),))) as bench:
        facts = bench.survey(Version(), [(asked, 7)])
    (found,) = facts.at(asked, 7, "x")
    assert (found.kind, found.dtype, found.shape) == ("tensor", "float32", (4,))
    assert facts.reached(asked, 8)
    assert not facts.reached(asked, 2)
