"""What each candidate makes of a program, and what it refuses. Nothing is run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from builders import event, run_of
from compilescope.change.fixes.subject import Program
from compilescope.change.tune.candidate import (
    BlockFacts,
    OptimizerFacts,
    StepFacts,
    TunedProgram,
    all_candidates,
    likelihood,
)
from compilescope.change.tune.step_place import loops_around
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.bodies import CompileTime, GraphCaptured
from compilescope.record.stack import CodeRef

_TRAIN = """import torch
from torch.utils.data import DataLoader


def main(device, data):
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    compiled = torch.compile(model)
    total = 0.0
    for x in DataLoader(data, batch_size=4):
        x = x.to(device)
        loss = compiled(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
"""
_FACTS = StepFacts(
    devices=("cuda",),
    dtypes=("torch.float32",),
    trains=True,
    optimizers=(OptimizerFacts(kind="AdamW", has_fused=True),),
    convolutions=2,
    blocks=(BlockFacts("blocks", "Block", 12),),
    bf16=True,
    capability=(9, 0),
    cache_artifacts=True,
)
_NEW_LINES = {
    "reduce-overhead": 'torch.compile(model, mode="reduce-overhead")',
    "max-autotune": 'torch.compile(model, mode="max-autotune")',
    "max-autotune-no-cudagraphs": 'torch.compile(model, mode="max-autotune-no-cudagraphs")',
    "fused-optimizer": "AdamW(model.parameters(), lr=1e-3, fused=True)",
    "compiled-optimizer": "    optimizer.step = torch.compile(optimizer.step)\n",
    "tf32-matmul": 'torch.set_float32_matmul_precision("high")\n',
    "bf16-autocast": 'torch.autocast("cuda", dtype=torch.bfloat16)(compiled.forward)\n',
    "channels-last": "    model.to(memory_format=torch.channels_last)\n    compiled =",
    "cpp-wrapper": "torch._inductor.config.cpp_wrapper = True\n",
    "coordinate-descent": "torch._inductor.config.coordinate_descent_tuning = True\n",
    "compiled-autograd": "torch._dynamo.config.compiled_autograd = True\n",
    "regional-compilation": "in model.blocks:\n        block.compile()\n    compiled = model\n",
    "mega-cache": "    torch.compiler.load_cache_artifacts(artifacts.read_bytes())\n",
    "async-transfers": "x.to(device, non_blocking=True)",
    "sum-on-device": "total += loss.detach()\n",
    "loader-workers": "DataLoader(data, batch_size=4, num_workers=2)",
}
_REFUSED = {"freezing": "trains", "foreach-optimizer": "foreach", "dynamic-shapes": "same sizes"}


def _tuned(tmp_path: Path, text: str = _TRAIN, facts: StepFacts = _FACTS) -> TunedProgram:
    file = tmp_path / "train.py"
    file.write_text(text)
    run = run_of()
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "compiled(x)" in each)
    place = loops_around(str(file), text, line)[0]
    return TunedProgram(Program(run, digest(run), str(file)), facts, place)


def _made(name: str, tuned: TunedProgram) -> str:
    candidate = next(each for each in all_candidates() if each.id == name)
    return candidate.propose(tuned).files[tuned.program.main]


@pytest.mark.parametrize("name", sorted(_NEW_LINES))
def test_it_changes_the_program_as_it_says(name: str, tmp_path: Path) -> None:
    tuned = _tuned(tmp_path)
    made = _made(name, tuned)
    assert _NEW_LINES[name] in made
    compile(made, "train.py", "exec")


@pytest.mark.parametrize("name", sorted({*_NEW_LINES} - {"bf16-autocast"}))
def test_what_is_there_already_is_not_proposed_again(name: str, tmp_path: Path) -> None:
    """But for autocast, which is seen in a run and not in the text."""
    made = _made(name, _tuned(tmp_path))
    with pytest.raises(Refused):
        _made(name, _tuned(tmp_path, made))


@pytest.mark.parametrize("name", sorted(_REFUSED))
def test_it_says_why_it_cannot_apply(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=_REFUSED[name]):
        _made(name, _tuned(tmp_path))


@pytest.mark.parametrize("name", sorted({*_NEW_LINES, *_REFUSED} - {"sum-on-device"}))
def test_another_backend_than_inductor_gets_nothing_of_inductors(name: str, tmp_path: Path) -> None:
    text = _TRAIN.replace("torch.compile(model)", 'torch.compile(model, backend="eager")')
    try:
        made = _made(name, _tuned(tmp_path, text))
    except Refused:
        return
    assert "_inductor" not in made and "mode=" not in made


def test_on_the_cpu_nothing_of_cuda_is_proposed(tmp_path: Path) -> None:
    facts = msgspec.structs.replace(_FACTS, devices=("cpu",), capability=None)
    tuned = _tuned(tmp_path, facts=facts)
    for name in ("reduce-overhead", "tf32-matmul", "async-transfers", "coordinate-descent"):
        with pytest.raises(Refused, match="CUDA device"):
            _made(name, tuned)
    assert 'autocast("cpu"' in _made("bf16-autocast", tuned)


def test_a_torch_that_saves_no_artifacts(tmp_path: Path) -> None:
    facts = msgspec.structs.replace(_FACTS, cache_artifacts=False)
    with pytest.raises(Refused, match="unavailable"):
        _made("mega-cache", _tuned(tmp_path, facts=facts))


def test_lines_that_save_what_was_compiled_name_nothing_twice(tmp_path: Path) -> None:
    """Whatever the file calls its own, and wherever it imports torch."""
    text = "import os as system\n" + _TRAIN.replace("total = 0.0", "artifacts = total = 0.0")
    made = _made("mega-cache", _tuned(tmp_path, text))
    assert 'artifacts_2 = pathlib.Path(system.environ.get("CACHE_ARTIFACTS", "train.art' in made
    assert "import atexit\n" in made and "import pathlib\n" in made
    inside = _TRAIN.replace("import torch\n", "import sys\n\nif sys.argv:\n    import torch\n", 1)
    assert "    artifacts = " in _made("mega-cache", _tuned(tmp_path, inside))


def test_inference_may_be_frozen(tmp_path: Path) -> None:
    text = "\n".join(line for line in _TRAIN.splitlines() if "optimizer" not in line) + "\n"
    facts = msgspec.structs.replace(_FACTS, trains=False, grad_enabled=False, optimizers=())
    tuned = _tuned(tmp_path, text, facts)
    assert "config.freezing = True" in _made("freezing", tuned)
    for name in ("fused-optimizer", "compiled-optimizer", "compiled-autograd"):
        with pytest.raises(Refused):
            _made(name, tuned)


def test_options_exclude_a_mode(tmp_path: Path) -> None:
    text = _TRAIN.replace("compile(model)", 'compile(model, options={"max_autotune": True})')
    with pytest.raises(Refused, match="options"):
        _made("max-autotune", _tuned(tmp_path, text))


def test_candidates_go_on_top_of_each_other(tmp_path: Path) -> None:
    """Also where they change the same line."""
    tuned = _tuned(tmp_path)
    text = _TRAIN
    for name in ("reduce-overhead", "channels-last", "fused-optimizer", "cpp-wrapper"):
        program = replace(tuned.program, files={tuned.program.main: text}, _modules={}, _own=[])
        text = _made(name, TunedProgram(program, _FACTS, tuned.place))
    for name in ("reduce-overhead", "channels-last", "fused-optimizer", "cpp-wrapper"):
        assert _NEW_LINES[name] in text


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("torch.compile(model)", "torch.compile(Net())", "    compiled.forward = "),
        (
            "compiled = torch.compile(model)",
            "compiled = fit(torch.compile(model))",
            "    compiled_2 = ",
        ),
        (
            "compiled = torch.compile(model)",
            "compiled = torch.compile(main)",
            "    compiled = torch.auto",
        ),
        (
            "compiled = torch.compile(model)",
            "model.compile(); compiled = model",
            "model.forward = ",
        ),
    ],
)
def test_autocast_is_put_around_what_is_compiled(
    old: str, new: str, lines: str, tmp_path: Path
) -> None:
    """Where a module of torch's own had it within, nothing of it was compiled."""
    made = _made("bf16-autocast", _tuned(tmp_path, _TRAIN.replace(old, new)))
    compile(made, "train.py", "exec")
    assert lines in made


def test_blocks_of_a_model_that_is_compiled_where_it_is_made(tmp_path: Path) -> None:
    text = _TRAIN.replace("compiled = torch.compile(model)", "compiled = torch.compile(Net())")
    made = _made("regional-compilation", _tuned(tmp_path, text))
    assert (
        "    compiled = Net()\n    for block in compiled.blocks:\n        block.compile()\n" in made
    )


def test_a_path_to_blocks_begins_where_the_model_does(tmp_path: Path) -> None:
    facts = msgspec.structs.replace(_FACTS, blocks=(BlockFacts("net.blocks", "Block", 12),))
    text = _TRAIN.replace("compiled = torch.compile(model)", "model.net = torch.compile(model.net)")
    made = _made("regional-compilation", _tuned(tmp_path, text, facts))
    assert "    for block in model.net.blocks:\n" in made


_STEP = """import torch

@torch.compile
def step(model, optimizer, x):
    loss = model(x).mean()
    loss.backward()
    optimizer.step()

def main(data):
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x in data:
        compiled(x)
        step(model, optimizer, x)

class Net(torch.nn.Module):
    def forward(self, x):
        return x
"""


def test_a_step_is_compiled_at_what_it_calls(tmp_path: Path) -> None:
    """Also where nothing is lost."""
    tuned = _tuned(tmp_path, _STEP)
    modules = _made("compile-modules", tuned)
    assert "    model = Net()\n    model.compile()\n" in modules
    assert "@torch.compile" not in modules
    both = _made("compile-modules-and-optimizer", tuned)
    assert "    model.compile()\n" in both
    assert "    optimizer.step = torch.compile(optimizer.step)\n" in both
    blocks = _made("regional-compilation", tuned)
    assert "    for block in model.blocks:\n        block.compile()\n" in blocks


def test_of_placements_one_can_be_chosen(tmp_path: Path) -> None:
    placed = [each for each in all_candidates() if each.placement]
    assert {each.group for each in placed} == {"placement"}
    with pytest.raises(Refused, match="nothing is lost"):
        _made("compile-modules", _tuned(tmp_path))


@pytest.mark.parametrize(
    ("waited", "lower_precision", "first"),
    [
        (0.9, False, "reduce-overhead"),
        (0.1, False, "freezing"),
        (0.1, True, "freezing"),
        (None, True, "reduce-overhead"),
    ],
)
def test_what_the_step_waits_for_decides_what_is_tried_first(
    waited: float | None, lower_precision: bool, first: str
) -> None:
    facts = msgspec.structs.replace(_FACTS, gpu_waited=waited)
    every = [each for each in all_candidates() if not each.autotunes and each.id != "fixes"]
    every.sort(key=lambda each: likelihood(each, facts, lower_precision=lower_precision))
    names = [each.id for each in every]
    assert names[0] == first
    assert names[-1] == "regional-compilation"
    assert (names.index("tf32-matmul") < names.index("fused-optimizer")) == (
        lower_precision and waited == 0.1
    )


def test_what_the_run_compiled_is_changed_whatever_names_its_backend(tmp_path: Path) -> None:
    """Its backend is an option of a benchmark, and there are helpers that this run did not use."""
    text = _TRAIN.replace("torch.compile(model)", "torch.compile(model, backend=backend)")
    unused = "@torch.compile\ndef balance(q):\n    return q + 1\n\n\ndef main("
    tuned = _tuned(tmp_path, text.replace("def main(", unused))
    file = tuned.program.main
    frame = CodeRef(file=file, line=99, function="forward")
    ran = (
        event(CompileTime(duration_ns=1, frame=frame)),
        event(GraphCaptured(stage="dynamo", backend="inductor")),
    )
    tuned = replace(tuned, program=replace(tuned.program, run=run_of(*ran)))
    changed = _made("reduce-overhead", tuned)
    assert 'torch.compile(model, backend=backend, mode="reduce-overhead")' in changed
    assert "@torch.compile\ndef balance" in changed
