"""Repros of a log's breaks that take the model from the user's script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import ROOT, event, frame, run_of
from compilescope.change.fixes.program_files import LogFiles
from compilescope.change.minify.logged_program import OwnProgram, write_own
from compilescope.instrument.torchapi.plain_torch import PlainTorch
from compilescope.knowledge.findings.breaks import BreakFinding, break_sites
from compilescope.record.bodies import GraphBreak

SCRIPT = """\
import sys
import torch
import torch_xla
import torch_xla.core.xla_model as xm
from torch import nn


class Gate(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)

    def forward(self, x, *, mask):
        h = self.fc(x)
        def scaled(v):
            if v.mean() > 0:
                return v * 2
            return v
        return scaled(h).masked_fill(~mask, 0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.ModuleList([Gate(4), Gate(4)])

    def forward(self, batch):
        for gate in self.gates:
            batch = gate(batch, mask=torch.ones(3, 4, dtype=torch.bool))
        return batch


device = xm.xla_device()
net = Net().to("xla")
net.compile(backend="tt")
for epoch in range(int(sys.argv[1])):
    with torch.no_grad():
        net(torch.randn(3, 4, device=device))
    torch_xla.sync()
    open("reached", "w").close()
"""
LINE = 16


def site(line: int = LINE, function: str = "scaled") -> BreakFinding:
    body = GraphBreak("Data-dependent branching", gb_id="GB0170")
    where = frame(line, file=f"{ROOT}/train.py", function=function, source="if v.mean() > 0:")
    (found,) = break_sites(run_of(event(body, number=1, stack=(where,))))
    return msgspec.structs.replace(found, rule="tensor-if")


def written(folder: Path) -> Path:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    return script


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in (("meta_path", sys.meta_path), ("path", sys.path), ("argv", sys.argv)):
        monkeypatch.setattr(sys, name, list(value))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    return monkeypatch


@pytest.mark.torch
def test_the_script_stops_at_the_line_with_what_is_called_there(
    tmp_path: Path, restored: pytest.MonkeyPatch
) -> None:
    from compilescope.change.minify.script.embedded.call_source import source_of
    from compilescope.change.minify.script.embedded.user_program import UserProgram

    restored.chdir(tmp_path)
    plain = PlainTorch()
    assert "torch_xla" in plain.install()
    script = str(written(tmp_path))
    program = UserProgram(script, ["1000000"], script, LINE, "scaled")
    calls = program.calls_at_line(plain.on_cpu)
    for name in ("torch_xla", "torch_xla.core", "torch_xla.core.xla_model"):
        del sys.modules[name]
    assert [type(called).__name__ for called, _, _ in calls] == ["Gate", "Net"]
    assert not program.grad and not (tmp_path / "reached").exists()
    _, args, kwargs = calls[0]
    assert source_of(args[0]) == "torch.randn((3, 4))"
    assert source_of(kwargs["mask"]) == "torch.ones((3, 4), dtype=torch.bool)"


@pytest.mark.torch
def test_values_as_code() -> None:
    import torch

    from compilescope.change.minify.script.embedded.call_source import source_of

    def made(value: Any) -> Any:
        return eval(source_of(value), {"torch": torch})

    ids = made(torch.tensor([[3, 9]], dtype=torch.int32))
    assert ids.shape == (1, 2) and ids.dtype == torch.int32 and int(ids.min()) >= 3
    assert made(torch.randn(2, dtype=torch.float16)).dtype == torch.float16
    assert made(torch.zeros(0, 3)).shape == (0, 3)
    for value in (None, 1.5, "a", (1,), [True, {"k": b"x"}], torch.float16, torch.device("cpu")):
        assert made(value) == value
    with pytest.raises(TypeError):
        source_of(object())


def test_devices_that_are_not_here_become_the_cpu_and_no_column_moves() -> None:
    text = 'a = torch.device("xla:0")\nb = x.to(\'xla\').y(z)\nc = "xla is"\n'
    made = PlainTorch().on_cpu(text)
    assert 'torch.device("cpu"  )' in made and ".to('cpu').y(z)" in made and '"xla is"' in made
    assert [*map(len, made.split("\n"))] == [*map(len, text.split("\n"))]
    assert PlainTorch().on_cpu("x = (") == "x = ("


@pytest.mark.torch
@pytest.mark.slow
def test_a_repro_of_the_users_model_breaks_at_the_line(tmp_path: Path) -> None:
    script = written(tmp_path)
    program = OwnProgram(str(script), ("3",), for_a_device=True, plain=True)
    made = write_own(site(), program, str(script), tmp_path / "repros")
    assert made.path is not None, made.reason
    text = made.path.read_text()
    assert "compiles `gates.0` (Gate) alone" in text and "torch_xla.sync()" in text
    assert "arguments(torch.randn((3, 4)), mask=torch.ones((3, 4), dtype=torch.bool))" in text
    assert "Verified to break here on plain torch; openxla and tt were not available." in text
    assert [path.name for path in (tmp_path / "repros").iterdir()] == [made.path.name]

    def ran(*words: str) -> int:
        command = [sys.executable, str(made.path), *words]
        return subprocess.run(command, capture_output=True, cwd=tmp_path).returncode

    assert ran("tt") == 2
    script.write_text(SCRIPT.replace("if v.mean() > 0:", "if len(v) > 0:"))
    assert ran() == 0


@pytest.mark.torch
@pytest.mark.slow
def test_a_script_that_cannot_run_is_said_once(tmp_path: Path) -> None:
    script = written(tmp_path)
    program = OwnProgram(str(script), plain=True)
    for _ in range(2):
        made = write_own(site(), program, str(script), tmp_path / "repros")
        assert made.path is None and "IndexError" in made.reason
    assert not list((tmp_path / "repros").iterdir())


_PREFIX = "V1116 10:00:00.000000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks] "
_BREAK = """\
Graph break in user code at /srv/train.py:16
Graph Break Reason: Data-dependent branching
  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`).
For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html
User code traceback:
  File "/srv/train.py", line 38, in <module>
    net(torch.randn(3, 4, device=device))
  File "/srv/train.py", line 16, in scaled
    if v.mean() > 0:
"""


@pytest.mark.torch
@pytest.mark.slow
def test_a_folder_with_the_program_is_enough(tmp_path: Path) -> None:
    """The log has the command too: without its argument the script fails."""
    (tmp_path / "mine").mkdir()
    written(tmp_path / "mine")
    lines = "".join(f"{_PREFIX}{line}\n" for line in _BREAK.splitlines())
    (tmp_path / "log.txt").write_text(f"$ python train.py 1\n{lines}")
    words = ["logs", "log.txt", "--repro", "--source", "mine", "-o", "run"]
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Wrote 1 repro with the model of mine/train.py." in done.stderr, done.stderr
    (repro,) = (tmp_path / "run" / "repros").glob("*.py")
    assert "ARGUMENTS = ['1']" in repro.read_text()


def test_a_folder_may_hold_another_version_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("first = 1\nsecond = 2\n")
    (tmp_path / "odd.py").write_bytes(b"\xff\xfe\x00")
    here = LogFiles(folders=(str(tmp_path),))
    assert here.has_another("/far/train.py", 2, "second = 3")
    assert here.has_another("/far/odd.py", 1, "x = 1")
    assert not here.has_another("/far/train.py", 2, "second = 2")
    assert not here.has_another("/far/model.py", 1, "x = 1")
