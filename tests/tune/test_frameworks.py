"""The step of a framework's program, and what its users are offered, as it runs. What is not
installed is skipped: `pip install accelerate pytorch-ignite fastai lightning` in the environment.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import msgspec
import pytest

from builders import event, run_of
from compilescope.base.processes.deadline import Deadline
from compilescope.change.fixes.subject import Program
from compilescope.change.repair.trials.version import Version
from compilescope.change.tune.candidate import (
    BlockFacts,
    OptimizerFacts,
    StepFacts,
    TunedProgram,
    all_candidates,
)
from compilescope.change.tune.first_run import FirstRun, FirstRunner
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.step_place import StepPlace
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.bodies import GraphCaptured

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(1800)]

_PROGRAMS = Path(__file__).parent / "programs"
_NEEDS = {
    "accelerate_loop": ("accelerate",),
    "trainer": ("transformers", "accelerate"),
    "ignite_engine": ("ignite",),
    "fastai_learner": ("fastai",),
    "lightning_trainer": ("lightning",),
}
_OPTIONS = TuneOptions(jobs=1, limit_s=900)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs leave files where they are started."""
    monkeypatch.chdir(tmp_path)


def _program(name: str, tmp_path: Path) -> Path:
    for package in _NEEDS.get(name, ()):
        pytest.importorskip(package)
    program = tmp_path / f"{name}.py"
    program.write_text((_PROGRAMS / program.name).read_text())
    return program


def _first_run(program: Path, options: TuneOptions = _OPTIONS) -> FirstRun:
    target = Target("script", (str(program),), folder=program.parent)
    caches = program.parent / "caches"
    caches.mkdir()
    with options.workbench(target, deadline=Deadline(None)) as bench:
        return FirstRunner(target, options, bench, caches).run()


# Each about 1 min.
@pytest.mark.parametrize(
    ("name", "file", "head"),
    [
        ("accelerate_loop", "accelerate_loop.py", "for (x,) in loader"),
        ("trainer", "trainer.py", "for "),
        ("ignite_engine", "engine.py", "while True"),
        ("fastai_learner", "learner.py", "for o in enumerate(self.dl)"),
        ("lightning_trainer", "training_epoch_loop.py", "while not self.done"),
    ],
)
def test_a_round_of_training_is_the_step(name: str, file: str, head: str, tmp_path: Path) -> None:
    """Of 60, in three epochs with an evaluation after each."""
    program = _program(name, tmp_path)
    text = program.read_text().replace('"inductor"', '"eager"')
    text = text.replace("torch_compile=True", 'torch_compile_backend="eager"')
    program.write_text(text)
    first = _first_run(program, dataclasses.replace(_OPTIONS, backend="eager"))
    assert os.path.basename(first.place.file) == file
    assert first.place.head.startswith(head)
    # None on a busy machine, which is not waited for. ignite's also goes round at an epoch's end.
    assert first.steps is None or 60 <= first.steps <= 63
    assert first.facts.trains


_LIBRARY = """def run(step, batches):
    for batch in batches:
        step(batch)
"""
_TWO_WAYS = """import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "site-packages"))
import engine

model = torch.compile(torch.nn.Linear(4, 4), backend="eager")
seen = []


def test(x):
    with torch.no_grad():
        seen.append(model(x))


def evaluate(batches):
    engine.run(test, batches)


for epoch in range(3):
    engine.run(lambda x: model(x).sum().backward(), [torch.randn(2, 4)] * 40)
    evaluate([torch.randn(2, 4)] * 4)
"""


def test_rounds_of_one_loop_that_are_come_to_by_two_ways_are_two_kinds(tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "engine.py").write_text(_LIBRARY)
    program = tmp_path / "train.py"
    program.write_text(_TWO_WAYS)
    first = _first_run(program)
    assert first.place.file == str(library / "engine.py")
    assert first.place.way
    assert first.steps in (120, None)


def test_a_step_may_run_in_another_thread(tmp_path: Path) -> None:
    program = tmp_path / "serve.py"
    program.write_text(
        "from concurrent.futures import ThreadPoolExecutor\n\nimport torch\n\n"
        'model = torch.compile(torch.nn.Linear(4, 4), backend="eager")\n\n\n'
        "def infer(x):\n    with torch.no_grad():\n        return model(x)\n\n\n"
        "with ThreadPoolExecutor(1) as pool:\n"
        "    list(pool.map(infer, [torch.randn(2, 4)] * 40))\n"
    )
    first = _first_run(program)
    assert first.place.function == "infer"
    assert first.steps in (40, None)


_FACTS = StepFacts(
    devices=("cuda",),
    dtypes=("torch.float32",),
    trains=True,
    optimizers=(OptimizerFacts(kind="AdamW", has_fused=True),),
    bf16=True,
    capability=(9, 0),
    cache_artifacts=True,
)
_BLOCKS = {"accelerate_loop": "blocks", "trainer": "bert.encoder.layer"}
_OF_ALL = ("bf16-autocast", "loader-workers", "mega-cache", "async-transfers")
_OFFERED = {
    "accelerate_loop": ("reduce-overhead", "regional-compilation", "fused-optimizer", *_OF_ALL),
    "trainer": ("reduce-overhead", "regional-compilation", "fused-optimizer", *_OF_ALL),
    "lightning_trainer": ("reduce-overhead", "fused-optimizer", *_OF_ALL),
    "ignite_engine": ("reduce-overhead", "fused-optimizer", "compiled-optimizer", *_OF_ALL),
    "fastai_learner": ("reduce-overhead", *_OF_ALL),
}


# Each about 1 min.
@pytest.mark.parametrize(
    ("name", "candidate"),
    [(name, candidate) for name, offered in _OFFERED.items() for candidate in offered],
)
def test_what_is_offered_runs(name: str, candidate: str, tmp_path: Path) -> None:
    """As it is, and something is still compiled. That a GPU has it is made up: here is none."""
    program = _program(name, tmp_path)
    run = run_of(event(GraphCaptured(stage="dynamo", text="", nodes=1, ops=1, backend="inductor")))
    blocks = (BlockFacts(_BLOCKS[name], "Block", 3),) if name in _BLOCKS else ()
    facts = msgspec.structs.replace(_FACTS, blocks=blocks)
    place = StepPlace("/site-packages/library.py", 1, "train", "for x in y")
    tuned = TunedProgram(Program(run, digest(run), str(program)), facts, place)
    proposed = next(each for each in all_candidates() if each.id == candidate).propose(tuned)
    target = Target("script", (str(program),), folder=tmp_path)
    with _OPTIONS.workbench(target, deadline=Deadline(None)) as bench:
        seen = bench.watch(Version().with_patch(proposed))
    assert seen.exit_status == 0 and not seen.timed_out
    assert seen.digest.graphs
