"""`benchmarks/tests_under_load.py` tells which verdicts changed from run to run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

_SCRIPT = Path(__file__).parents[1] / "benchmarks" / "tests_under_load.py"
PASSED = '<testcase classname="tests.test_a" name="{}"/>'
FAILED = '<testcase classname="tests.test_a" name="{}"><failure message="no"/></testcase>'
BROKEN = '<testcase classname="tests.test_a" name="{}"><error message="no"/></testcase>'
SKIPPED = '<testcase classname="tests.test_a" name="{}"><skipped message="no"/></testcase>'


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tests_under_load", _SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _runs(folder: Path, *runs: str) -> dict[str, dict[str, str]]:
    found = {}
    for number, cases in enumerate(runs, 1):
        file = folder / f"{number}.xml"
        file.write_text(f'<testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>')
        found[file.stem] = _script()._read(file)
    return found


def test_the_same_in_all_runs_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = PASSED.format("one") + SKIPPED.format("two")
    assert _script()._compare(_runs(tmp_path, cases, cases)) == 0
    assert capsys.readouterr().out == "2 runs of 2 tests: 0 failed or changed their verdict\n"


def test_what_failed_or_changed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = PASSED.format("one") + FAILED.format("two") + PASSED.format("three")
    # A test that passes, and whose teardown does not.
    second = PASSED.format("one") + BROKEN.format("one") + FAILED.format("two")
    assert _script()._compare(_runs(tmp_path, first, second)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "changed: tests.test_a::one: passed in 1, failed in 2",
        "changed: tests.test_a::three: passed in 1, not run in 2",
        "failed: tests.test_a::two",
        "2 runs of 3 tests: 3 failed or changed their verdict",
    ]
