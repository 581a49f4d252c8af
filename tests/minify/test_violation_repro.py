"""Repro scripts: each leads to the violations that it was made for, or is not handed out."""

from __future__ import annotations

import contextlib
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from compilescope import (  # noqa: E402
    Constraint,
    ConstraintError,
    DtypeConstraint,
    MemoryConstraint,
    ShapeConstraint,
    UnsupportedOpsConstraint,
    mock_backend,
)
from compilescope.backends.mock.backend import CheckedModule, MadeRepros, MockBackend  # noqa: E402
from compilescope.backends.mock.configuration import configure  # noqa: E402
from compilescope.base.settings import fresh_environment  # noqa: E402
from compilescope.change.minify.violations.kinds import facts  # noqa: E402
from compilescope.record.device import Alignment, Device, Shapes  # noqa: E402
from minify.violation_scripts import violation_script  # noqa: E402

LIMIT = 3
WEIGHT = torch.ones(4, 4, requires_grad=True)
CONSTANT = torch.ones(4)
STRICT = (
    ShapeConstraint(16),
    DtypeConstraint(["float32"]),
    UnsupportedOpsConstraint(["aten.mm", "aten.addmm", "aten.sin", "aten.cos", "aten.convolution"]),
    MemoryConstraint(10),
)


@pytest.fixture(autouse=True)
def fresh_dynamo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("MOCK_STRICT", "MOCK_ALIGNMENT", "MOCK_MAX_MEMORY", "MOCK_MAX_PEAK_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    config = torch._dynamo.config
    before = config.get_config_copy()
    torch._dynamo.reset()
    yield
    # A script may set what the program had set, and in this process that stays.
    for name, value in config.get_config_copy().items():
        if value != before[name]:
            setattr(config, name, before[name])
    torch._dynamo.reset()


class Small(Constraint):
    """Defined here, so that a script must take it along."""

    def __init__(self, most: int = LIMIT) -> None:
        self.most = most

    def check_node(self, node: Any) -> Any:
        if node.op == "call_function" and len(node.name) > self.most:
            return self.breach(node, found=f"a name of {len(node.name)}", allowed="short names")
        return None


def branching(x: Any) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        x = checkpoint(lambda q: (q @ WEIGHT).float(), x, use_reentrant=False)
    x = torch.cond(x.sum() > 0, lambda q: q.cos(), lambda q: q.sin(), (x,))
    with torch.no_grad():
        y = x @ WEIGHT
    return x + y


def strided(x: Any, y: Any) -> Any:
    return x.sin() + y


def numbers(x: Any, n: int) -> Any:
    return x.sin() * n + torch.arange(n * 3)


def constants(x: Any) -> Any:
    return x.sin() + torch.tensor([1.0, 2, 3, 4]) + CONSTANT


def choosing(x: Any) -> Any:
    return x[x > 0].sin() + x.sum().item()


def mapping(x: Any) -> Any:
    return torch.vmap(lambda row: row @ WEIGHT)(x).sin()


class Wave(torch.autograd.Function):
    """A gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * ctx.saved_tensors[0].cos()


def waving(x: Any) -> Any:
    return Wave.apply(x) * 2


SUBJECTS: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "higher-order": (branching, (torch.randn(3, 4),), None),
    "layers": (nn.Sequential(nn.Linear(5, 7), nn.ReLU()), (torch.randn(3, 5),), torch.no_grad),
    "autocast": (
        nn.Linear(5, 7),
        (torch.randn(3, 5),),
        lambda: torch.autocast("cpu", torch.bfloat16),
    ),
    "numbers": (numbers, (torch.randn(3, 21), 7), None),
    "strides": (strided, (torch.randn(5, 3).T, torch.randn(1, 5).expand(3, 5)), None),
    "constants": (constants, (torch.randn(4, 4),), None),
    "vmap": (mapping, (torch.randn(3, 4),), None),
    "convolution": (
        nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.Flatten(), nn.Linear(180, 3)),
        (torch.randn(2, 3, 8, 8),),
        None,
    ),
    "attention": (nn.TransformerEncoderLayer(20, 2), (torch.randn(5, 2, 20),), None),
    "own gradient": (waving, (torch.randn(3, 4, requires_grad=True),), None),
    "data": (choosing, (torch.randn(3, 4),), None),
}


def refused(
    function: Any, args: Any, dynamic: bool, context: Any, constraints: Any
) -> tuple[ConstraintError, str]:
    """The error, and the script that strict mode would write."""
    scripts: list[str] = []

    def reproduce(judged: CheckedModule) -> MadeRepros:
        scripts.append(violation_script(judged))
        return MadeRepros("written")

    backend = MockBackend(configure(constraints=constraints), reproduce)
    with pytest.raises(ConstraintError) as error, context:
        torch.compile(function, backend=backend, dynamic=dynamic)(*args)
    return error.value, scripts[0]


def run(script: str, tmp_path: Path) -> ConstraintError:
    file = tmp_path / "script.py"
    file.write_text(script)
    torch._dynamo.reset()
    shown = runpy.run_path(str(file), run_name="__repro__")
    with pytest.raises(ConstraintError) as error:
        shown["compiled"]()
    assert shown["main"]()[0] is True
    return error.value


QUICK = ("numbers", "strides", "constants")
"""With dynamic shapes too."""


def is_slow(name: str, dynamic: bool) -> bool:
    return name == "attention" or (dynamic and name not in QUICK)


CASES = [
    pytest.param(name, dynamic, marks=[pytest.mark.slow] if is_slow(name, dynamic) else [])
    for name in SUBJECTS
    for dynamic in (False, True)
]


@pytest.mark.parametrize(("subject", "dynamic"), CASES)
def test_a_script_leads_to_the_same_violations(subject: str, dynamic: bool, tmp_path: Path) -> None:
    function, args, context = SUBJECTS[subject]
    wanted = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    around = context() if context else contextlib.nullcontext()
    with torch._dynamo.config.patch(wanted if subject == "data" else {}):
        error, script = refused(function, args, dynamic, around, STRICT)
    assert "torch.compile(Graph(), backend=compilescope.mock_backend(" in script
    assert facts(run(script, tmp_path).violations) == facts(error.violations)


def test_a_constraint_of_the_program_goes_along(tmp_path: Path) -> None:
    error, script = refused(
        strided, (torch.randn(4), torch.randn(4)), False, contextlib.nullcontext(), [Small(2)]
    )
    assert "Small(2)" in script
    assert facts(run(script, tmp_path).violations) == facts(error.violations)


def test_a_constraint_of_a_function_goes_along_with_what_it_uses(tmp_path: Path) -> None:
    class Local(Constraint):
        def check_node(self, node: Any) -> Any:
            if node.op == "call_function":
                return self.breach(node, found=f"more than {LIMIT}", allowed="nothing")
            return None

    error, script = refused(
        strided, (torch.randn(4), torch.randn(4)), False, contextlib.nullcontext(), [Local()]
    )
    assert "class Local(Constraint)" in script
    assert f"LIMIT = {LIMIT}" in script
    assert facts(run(script, tmp_path).violations) == facts(error.violations)


def test_a_device_is_written_out_unless_it_is_shipped(tmp_path: Path) -> None:
    scripts = []

    def reproduce(judged: CheckedModule) -> MadeRepros:
        scripts.append(violation_script(judged))
        return MadeRepros("")

    own = Device(name="mine", shapes=Shapes(alignment=(Alignment(multiple=9),)))
    for device in (own, "npu-a"):
        torch._dynamo.reset()
        with pytest.raises(ConstraintError):
            backend = MockBackend(configure(device=device), reproduce)
            torch.compile(nn.Linear(5, 5), backend=backend)(torch.randn(5, 5))
    assert "Device(name='mine', shapes=Shapes(alignment=(Alignment(multiple=9),)))" in scripts[0]
    assert "device='npu-a'" in scripts[1]
    run(scripts[0], tmp_path)


def test_no_weights_are_written() -> None:
    secret = nn.Linear(3000, 30)
    secret.weight.data.fill_(0.12345)
    _, script = refused(secret, (torch.randn(2, 3000),), False, contextlib.nullcontext(), STRICT)
    assert "0.12345" not in script
    assert "tensor((30, 3000), torch.float32, grad=True" in script
    assert len(script) < 50_000


@pytest.mark.slow
def test_it_is_verified_in_a_fresh_process_and_named_in_the_error(tmp_path: Path) -> None:
    folder = tmp_path / "repros"
    backend = mock_backend(constraints=STRICT, repro=folder, repro_timeout_s=600)
    x, y = torch.randn(3, 5), torch.randn(3, 5)
    with pytest.raises(ConstraintError) as error:
        torch.compile(strided, backend=backend)(x, y)
    path = Path(error.value.repro_path)
    assert {Path(each) for each in error.value.repro_paths} == set(folder.iterdir())
    assert len(error.value.repro_paths) > 1  # One for each kind of violation.
    assert "Repros, each verified in a fresh process:" in str(error.value)
    assert path.name in "".join(str(error.value).split())
    written = path.stat().st_mtime_ns
    torch._dynamo.reset()
    with pytest.raises(ConstraintError) as again:
        torch.compile(strided, backend=mock_backend(constraints=STRICT, repro=folder))(x, y)
    # The same violations: the scripts that are there will do.
    assert again.value.repro_paths == error.value.repro_paths
    assert path.stat().st_mtime_ns == written
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env=fresh_environment(),
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "compilescope.ConstraintError: mock does not support the graph of Graph" in done.stderr


def test_what_cannot_be_verified_is_not_handed_out(tmp_path: Path) -> None:
    folder = tmp_path / "repros"
    backend = mock_backend(constraints=STRICT, repro=folder, repro_timeout_s=0.01)
    with pytest.raises(ConstraintError) as error:
        torch.compile(nn.Linear(6, 7), backend=backend)(torch.randn(3, 6))
    assert "No repro: it could not be verified within 0.01 s." in str(error.value)
    assert error.value.repro_path is None
    assert list(folder.iterdir()) == []


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    @torch._dynamo.allow_in_graph
    def hidden(x: Any) -> Any:
        return x.sin()

    backend = mock_backend(constraints=STRICT, repro=tmp_path)
    with pytest.raises(ConstraintError) as error:
        torch.compile(lambda x: hidden(x) + 1, backend=backend)(torch.randn(3))
    assert "which cannot be imported" in " ".join(str(error.value).split())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    backend = mock_backend(constraints=STRICT, repro=blocked / "repros")
    with pytest.raises(ConstraintError) as error:
        torch.compile(nn.Linear(7, 7), backend=backend)(torch.randn(3, 7))
    assert "No repro:" in str(error.value)
    assert "cannot be written" in " ".join(str(error.value).split())
