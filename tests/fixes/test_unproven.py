"""Fixes for what a log shows: proposed on the files at hand, where the line is the log's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.base.errors import ToolError
from compilescope.change.fixes.program_files import LogFiles, arguments_of_log, main_of_log
from compilescope.change.repair.delivery.logged import in_words, logged_subjects
from compilescope.record.bodies import GraphBreak, LogRead, SourceChecked
from compilescope.record.run import Run

SCRIPT = '''\
"""What it does."""
from __future__ import annotations
import torch
@torch.compile
def f(x):
    y = x * 2
    print("y", y.shape)
    done = print(y) or y
    return y
'''
BLOCK = """\
import torch
class Block(torch.nn.Module):
    def __init__(s, i):
        super().__init__()
        s.i = i
    def forward(s, x):
        print("block", s.i, x.shape)
        print(s, x.shape)
        return x
"""


def logged(*lines: tuple[int, str], file: str = f"{ROOT}/train.py") -> Run:
    """A log of prints at these lines, on a machine where the files have other paths."""
    events = []
    for number, (line, source) in enumerate(lines, 1):
        body = GraphBreak(
            "Failed to trace builtin operator",
            gb_id="GB0059",
            context="builtin print []",
            explanation="Dynamo does not know how to trace builtin operator `print`",
        )
        where = frame(line, file=file, function="f", source=source, column=None, end_column=None)
        events.append(event(body, number=number, stack=(where,)))
    return run_of(*events)


def written(folder: Path) -> LogFiles:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    return LogFiles(str(script), ROOT)


def test_a_cause_is_found_in_the_script_and_proposed_there(tmp_path: Path) -> None:
    here = written(tmp_path)
    run = logged((7, '    print("y", y.shape)'), (8, "    done = print(y) or y"))
    first, second = logged_subjects(run, here)
    assert first.place == "train.py:7 GB0059" and first.found
    chosen = first.propose()
    assert chosen is not None and set(chosen[1].files) == {here.main}
    assert in_words(first, *chosen).startswith("train.py:7 GB0059: make the output an operator")
    assert second.propose() is None and second.remedy


def test_a_line_that_is_not_the_logs_is_not_touched(tmp_path: Path) -> None:
    (cause,) = logged_subjects(logged((7, "    print(other)")), written(tmp_path))
    assert not cause.found and cause.propose() is None


def test_a_package_is_found_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = written(tmp_path)
    module = tmp_path / "lib" / "site-packages" / "nets" / "block.py"
    module.parent.mkdir(parents=True)
    module.write_text(BLOCK)
    monkeypatch.setattr(sys, "path", [*sys.path, str(module.parent.parent)])
    file = "/opt/venv/lib/python3.12/site-packages/nets/block.py"
    run = logged((7, 'print("block", s.i, x.shape)'), (8, "print(s, x.shape)"), file=file)
    for cause in logged_subjects(run, here):
        assert cause.subject.finding.file == str(module)
        chosen = cause.propose()
        # Whatever it is called, a module is nothing that an operator can be handed.
        assert chosen is not None and "s: torch.Tensor" not in chosen[1].files[str(module)]


def test_other_files_are_found_beside_the_script_and_in_given_folders(tmp_path: Path) -> None:
    here = written(tmp_path)
    for folder in (tmp_path / "models", tmp_path / "elsewhere" / "layers"):
        folder.mkdir(parents=True)
        (folder / "net.py").write_text("x = 1\ny = 2\n")
    beside = str(tmp_path / "models" / "net.py")
    assert here.find(f"{ROOT}/models/net.py", 2, "y = 2") == beside
    assert here.find("/home/user/models/net.py", 2, "  y = 2") == beside
    assert here.find(f"{ROOT}/layers/net.py", 2, "y = 2") is None
    there = LogFiles(here.main, ROOT, (str(tmp_path / "elsewhere"),))
    assert there.find(f"{ROOT}/layers/net.py", 2, "") is not None
    assert there.find(f"{ROOT}/layers/net.py", 9, "") is None


def test_the_script_is_the_outermost_file_of_a_stack(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    stack = (
        frame(3, file=f"{ROOT}/train.py", function="<module>", source="import torch"),
        frame(7, file=f"{ROOT}/other.py", function="f", source="print(x)"),
    )
    run = run_of(event(GraphBreak("x"), number=1, stack=stack))
    assert main_of_log(run) == ""
    assert main_of_log(run, [str(tmp_path)]) == str(script)


def test_a_program_is_run_only_from_a_folder_that_the_user_names(tmp_path: Path) -> None:
    """A log may name any file of this machine."""
    script = tmp_path / "theirs" / "train.py"
    script.parent.mkdir()
    script.write_text("\n\nimport torch\n")
    there = frame(3, file=str(script), function="<module>", source="import torch")
    begun = event(GraphBreak("x"), number=1, stack=(there,))
    given = tmp_path / "given"
    assert main_of_log(run_of(begun)) == str(script)
    assert main_of_log(run_of(begun), [str(tmp_path / "other")], only_there=True) == ""
    (given / "theirs").mkdir(parents=True)
    mine = given / "theirs" / "train.py"
    mine.write_text(script.read_text())
    assert main_of_log(run_of(begun), [str(given)], only_there=True) == str(mine)
    differs = SourceChecked(str(script), str(mine), 0, "line 8 is `x`, in the log `y`")
    run = run_of(begun, event(differs, number=2))
    assert main_of_log(run, [str(given)], only_there=True) == ""


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("python -u train.py --lr 1e-3 'a b'", ("--lr", "1e-3", "a b")),
        ("torchrun --nproc-per-node 2 /srv/train.py x", ("x",)),
        ("python other.py train", ()),
        ("python train.py 'open", ()),
        ("", ()),
    ],
)
def test_it_is_run_with_the_arguments_of_the_log(command: str, arguments: tuple[str, ...]) -> None:
    run = run_of(event(LogRead("a.log", command=command), number=1))
    assert arguments_of_log(run, "/here/train.py") == arguments


@pytest.mark.parametrize("text", ["def f(:\n", None])
def test_a_script_that_cannot_be_read(tmp_path: Path, text: str | None) -> None:
    script = tmp_path / "train.py"
    if text is not None:
        script.write_text(text)
    with pytest.raises(ToolError, match="Cannot change"):
        logged_subjects(logged(), LogFiles(str(script)))
