"""Advice as data: pure, in one shape, and with diffs that `patch` applies. Needs no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from advice.broken import BRANCH, broken_run
from compilescope.change.fixes.advice import advised
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.findings.remedy import Advice, is_not_tried
from compilescope.record.bodies import FixAttempt, GraphBreak
from compilescope.record.run import Run, read_run
from samples import store

PROGRAM = """import torch


def f(x):
    y = x + 1
    print("between")
    return y * 2


f = torch.compile(f, backend="eager")
f(torch.ones(3))
"""
BLOCK_TORCH = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
"""


def advice_of(run: Run) -> tuple[Advice, ...]:
    """For the one break of a run."""
    (site,) = advised(run, digest(run)).sites
    return site.advice


def patched(folder: Path, diff: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = ["patch", "-p1", "--no-backup-if-mismatch", *options]
    return subprocess.run(command, input=diff.encode(), cwd=folder, capture_output=True)


def written(folder: Path, text: str, name: str = "program.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_a_stored_run_says_the_same_with_torch_blocked(tmp_path: Path) -> None:
    file = written(tmp_path, PROGRAM)
    run = broken_run(tmp_path, file, PROGRAM, 'print("between")')
    folder = store(run, tmp_path / "home", "abc-program")
    here = json.loads(msgspec.json.encode(advice_of(read_run(folder))))
    assert here[0]["diff"]
    code = BLOCK_TORCH + "sys.argv = ['compilescope', 'explain', '--json', sys.argv[1]]\n"
    code += "from compilescope.apps.cli.main import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (site,) = json.loads(done.stdout)["sites"]
    assert site["advice"] == here


def test_one_run_gives_one_advice(tmp_path: Path) -> None:
    file = written(tmp_path, PROGRAM)
    run = broken_run(tmp_path, file, PROGRAM, 'print("between")')
    assert advice_of(run) == advice_of(run)
    assert file.read_text() == PROGRAM


def test_its_shape(tmp_path: Path) -> None:
    run = broken_run(tmp_path, written(tmp_path, PROGRAM), PROGRAM, 'print("between")')
    told = json.loads(msgspec.json.encode(advice_of(run)))
    assert len(told) > 1
    for each in told:
        assert list(each) == ["fix", "status", "diff", "text"]
        assert each["status"] in ("proven", "proposed", "by hand")
        assert each["text"].strip() and each["text"].strip()[-1] in ".?"
        assert not (each["fix"] is None and each["diff"]), "a change that no fix stands behind"
        assert not (each["status"] == "by hand" and each["diff"])


def test_what_a_run_proved_comes_first(tmp_path: Path) -> None:
    file = written(tmp_path, PROGRAM)
    diff = "--- a/program.py\n+++ b/program.py\n@@ -6 +6 @@\n-    print('between')\n+    pass\n"
    proof = FixAttempt(
        "print-while-eager", "print only in eager mode", "verified", because="0.1", kept=True,
        diff=diff,
    )  # fmt: skip
    first, *rest = advice_of(broken_run(tmp_path, file, PROGRAM, 'print("between")', proof))
    assert (first.fix, first.status, first.diff) == ("print-while-eager", "proven", diff)
    assert all(each.status != "proven" for each in rest)
    assert all(each.fix != "print-while-eager" for each in rest), "proven, and proposed again"


def test_what_a_run_rejected_is_not_proposed(tmp_path: Path) -> None:
    file = written(tmp_path, PROGRAM)
    plain = advice_of(broken_run(tmp_path, file, PROGRAM, 'print("between")'))
    first = plain[0].fix
    assert first is not None
    failed = FixAttempt(first, "it", "rejected", because="0.1", reason="other results")
    told = advice_of(broken_run(tmp_path, file, PROGRAM, 'print("between")', failed))
    assert all(each.fix != first for each in told)


def test_where_every_fix_refuses_the_reason_is_told(tmp_path: Path) -> None:
    text = PROGRAM.replace(
        'print("between")', "if torch.isnan(y).any():\n        log.warning('nan')"
    )
    text = text.replace(
        "import torch\n", "import logging\n\nimport torch\n\nlog = logging.getLogger()\n"
    )
    run = broken_run(
        tmp_path, written(tmp_path, text), text, "torch.isnan(y).any()", body=BRANCH
    )  # fmt: skip
    told = advice_of(run)
    if any(each.diff for each in told):
        assert all(each.fix not in ("cond-for-if", "where-for-if") for each in told)
        return
    assert told[0].status == "by hand"
    assert "log.warning" in told[0].text or "writes" in told[0].text, told[0]
    assert not any("torch.cond" in each.text for each in told), "a fix refuses what is advised"


def test_what_switches_something_off_is_no_diff_without_a_run(tmp_path: Path) -> None:
    text = """import torch


class NetConfig:
    def __init__(self, checked=True):
        self.checked = checked


def f(x, config):
    if config.checked:
        torch.distributed.barrier()
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3), NetConfig())
"""
    skipped = GraphBreak(
        gb_type="Attempted to call function marked as skipped", gb_id="GB0007", explanation="x"
    )
    call = "torch.distributed.barrier()"
    run = broken_run(tmp_path, written(tmp_path, text), text, call, body=skipped)
    (told,) = [each for each in advice_of(run) if each.fix == "config-field"]
    assert not told.diff and "can try it" in told.text


def test_no_diff_in_an_installed_package(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "site-packages" / "layers" / "block.py"
    file = written(library.parent, PROGRAM, library.name)
    told = advice_of(broken_run(tmp_path, file, PROGRAM, 'print("between")'))
    assert told
    for each in told:
        assert "site-packages" not in each.diff and "layers/block.py" not in each.diff
    assert file.read_text() == PROGRAM


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "on disk"])
@pytest.mark.parametrize(
    "text",
    [
        PROGRAM,
        PROGRAM.replace("\n", "\r\n"),
        PROGRAM.replace("    ", "\t"),
        PROGRAM.rstrip("\n"),
        PROGRAM.replace("between", "zwischen – größer →"),
        PROGRAM.replace("import torch\n", "import torch\n\x0c\n"),
        "\ufeff" + PROGRAM,
    ],
    ids=["plain", "crlf", "tabs", "no newline at the end", "not ascii", "form feed", "bom"],
)
def test_diffs_apply(text: str, kept: bool, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    expression = next(line.strip() for line in text.splitlines() if "print(" in line)
    shown = text.removeprefix("\ufeff")
    diffs = [e.diff for e in advice_of(broken_run(tmp_path, file, shown, expression, kept=kept))]
    assert diffs[0]
    for diff in filter(None, diffs):
        file.write_bytes(text.encode())
        done = patched(tmp_path, diff, "-F0")
        assert done.returncode == 0, (done.stdout, diff)
        after = file.read_bytes().decode()
        assert after != text
        compile(after.removeprefix("\ufeff"), "program.py", "exec")
        assert after.startswith("\ufeff") == text.startswith("\ufeff")
        if "\r\n" in text:
            assert after.count("\r\n") == after.count("\n")
        check = subprocess.run(
            ["git", "apply", "--reverse", "--check", "-"],
            input=diff.encode(), cwd=tmp_path, capture_output=True,
        )  # fmt: skip
        assert check.returncode == 0, check.stderr


def test_a_script_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """Its folder is the root of the run: there `patch -p1` applies."""
    root = tmp_path / "src" / "deep down"
    file = written(root, PROGRAM)
    (first, *_) = advice_of(broken_run(root, file, PROGRAM, 'print("between")'))
    assert patched(root, first.diff, "-F0").returncode == 0
    assert file.read_text() != PROGRAM


def test_a_module_below_the_script(tmp_path: Path) -> None:
    file = written(tmp_path, PROGRAM, "models/parts/block.py")
    (first, *_) = advice_of(broken_run(tmp_path, file, PROGRAM, 'print("between")'))
    assert first.diff
    assert patched(tmp_path, first.diff, "-F0").returncode == 0
    assert file.read_text() != PROGRAM


def test_a_file_that_changed_elsewhere(tmp_path: Path) -> None:
    file = written(tmp_path, PROGRAM)
    run = broken_run(tmp_path, file, PROGRAM, 'print("between")')
    file.write_text("# A line more.\n" * 3 + PROGRAM)
    (first, *_) = advice_of(run)
    assert patched(tmp_path, first.diff).returncode == 0
    assert file.read_text().startswith("# A line more.\n" * 3)


def test_a_line_that_changed_is_not_overwritten(tmp_path: Path) -> None:
    file = written(tmp_path, PROGRAM)
    run = broken_run(tmp_path, file, PROGRAM, 'print("between")')
    now = PROGRAM.replace('    print("between")\n', "    y = y.relu()\n")
    file.write_text(now)
    for each in advice_of(run):
        if 'print("between")' in each.diff:
            assert patched(tmp_path, each.diff, "--dry-run").returncode != 0


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """The run holds its text; without that there is nothing to change, and no fault."""
    file = written(tmp_path, PROGRAM)
    with_text = broken_run(tmp_path, file, PROGRAM, 'print("between")')
    without = broken_run(tmp_path, file, PROGRAM, 'print("between")', kept=False)
    file.unlink()
    assert advice_of(with_text)[0].diff
    told = advice_of(without)
    assert told and not any(each.diff for each in told)


def test_a_limit_says_that_nobody_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PROGRAM + "# a long file\n" * 500
    file = written(tmp_path, text)
    run = broken_run(tmp_path, file, text, 'print("between")')
    offered = advice_of(run)
    assert offered[0].diff
    monkeypatch.setattr("compilescope.knowledge.analysis.partial_digest._LONG", 0)
    monkeypatch.setattr("compilescope.change.fixes.advice._LARGEST_OF_LONG", 5_000)
    limited = advice_of(run)
    # What is read first says what to do, and at the end what would look further.
    assert limited[0].status == "by hand" and not is_not_tried(limited)
    assert f"compilescope explain {run.header.run} --cause 1" in limited[-1].text
    assert not any(each.text.startswith("No automatic fix") for each in limited)
    (site,) = advised(run, digest(run), only=1).sites
    assert site.advice == offered


def test_files_beyond_the_limit_are_not_called_fixed_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fixes may pass over a file that they cannot have: the adviser must not."""
    file = written(tmp_path, PROGRAM)
    run = broken_run(tmp_path, file, PROGRAM, 'print("between")')
    monkeypatch.setattr("compilescope.knowledge.analysis.partial_digest._LONG", 0)
    monkeypatch.setattr("compilescope.change.fixes.subject._ALWAYS_PARSED", 0)
    monkeypatch.setattr("compilescope.change.fixes.advice._SOURCE_OF_CAUSE", -1)
    assert "--cause 1` looks for a fix" in advice_of(run)[-1].text
