"""The one ending of repro scripts: a line that says what is shown, and the status for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.base.outputs import is_repro
from compilescope.change.minify.script.conclusion import (
    ENDING_IMPORTS,
    FIXED,
    INCONCLUSIVE,
    PRESENT,
    ending_source,
    exits,
    shows_bug,
)
from compilescope.change.minify.script.verification import why_not_shown
from compilescope.change.minify.source.findings import source_finding
from compilescope.change.minify.source.script import Story, finished_script

BODIES = {
    "return True, 'as ever.'": (PRESENT, "The bug is present: as ever."),
    "return False, 'not any more.'": (FIXED, "The bug is fixed: not any more."),
    "return None, 'another error.'": (INCONCLUSIVE, "Inconclusive: another error."),
    "raise KeyError('else')": (INCONCLUSIVE, "Inconclusive: KeyError: 'else'"),
}


def _script(folder: Path, body: str, above: str = "") -> Path:
    path = folder / "repro.py"
    parts = [*ENDING_IMPORTS, above, f"def main():\n    {body}", ending_source()]
    path.write_text("\n\n".join([*parts, "conclude_from(main)\n"]))
    return path


@pytest.mark.parametrize("body", BODIES)
def test_a_script_says_what_it_shows_and_leaves_with_its_status(tmp_path: Path, body: str) -> None:
    path = _script(tmp_path, body)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    status, words = BODIES[body]
    assert (done.returncode, done.stderr.splitlines()[-1]) == (status, words)
    assert shows_bug(done.returncode, done.stderr.splitlines()) is (status == PRESENT)
    assert (why_not_shown(path, 60.0) == "") is (status == PRESENT)


def test_a_script_that_breaks_before_it_concludes_is_no_repro(tmp_path: Path) -> None:
    path = _script(tmp_path, "return True, ''", above="import no_such_module_anywhere")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert done.returncode == PRESENT  # Python's own status for any error.
    assert "no_such_module_anywhere" in why_not_shown(path, 60.0)


def test_every_kind_says_what_its_status_means() -> None:
    for thing in ("bug", "graph break", "recompile", "crash"):
        assert is_repro(exits(thing).encode())


def test_a_program_may_have_the_names_of_the_ending(tmp_path: Path) -> None:
    crash = source_finding(
        "failure",
        what="KeyError",
        reason="KeyError: 'a'",
        subject="run",
        file="",
        line=0,
        function="",
        source="",
        title="KeyError: 'a'",
    )
    program = "conclude = failure = expected = 1\nprint(conclude, failure, expected)\n1 / 0\n"
    script = finished_script(program, crash, Story("p.py", "2.13", 3), guarded=False)
    path = tmp_path / "repro.py"
    path.write_text(script.replace("import torch\n", ""))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert done.returncode == INCONCLUSIVE
    assert done.stderr.strip().endswith(
        "something else went wrong: ZeroDivisionError: division by zero"
    )
