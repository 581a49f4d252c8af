"""Arguments of a framework's call, where the program compiles nothing by itself. Nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import event, run_of
from compilescope.change.fixes.subject import Program
from compilescope.change.tune.candidate import (
    OptimizerFacts,
    StepFacts,
    TunedProgram,
    all_candidates,
)
from compilescope.change.tune.step_place import StepPlace
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.bodies import GraphCaptured

_TRAINER = """from transformers import Trainer, TrainingArguments

arguments = TrainingArguments(
    output_dir="out",
    max_steps=40,
    torch_compile=True,
)
Trainer(model=model, args=arguments, train_dataset=data).train()
"""
_DERIVED = """from trl import SFTConfig, SFTTrainer

SFTTrainer(model, args=SFTConfig(torch_compile=True), train_dataset=data).train()
"""
_LIGHTNING = """import lightning as L

L.Trainer(max_steps=40).fit(model, data)
"""
_ACCELERATE = """from accelerate import Accelerator
from accelerate.utils import TorchDynamoPlugin

accelerator = Accelerator(dynamo_plugin=TorchDynamoPlugin(backend="inductor"))
"""
_FACTS = StepFacts(
    devices=("cuda",),
    dtypes=("torch.float32",),
    trains=True,
    optimizers=(OptimizerFacts(kind="AdamW", has_fused=True),),
    bf16=True,
    capability=(9, 0),
)


def _made(name: str, tmp_path: Path, text: str, facts: StepFacts = _FACTS) -> str:
    file = tmp_path / "train.py"
    file.write_text(text)
    run = run_of(event(GraphCaptured(stage="dynamo", text="", nodes=1, ops=1, backend="inductor")))
    place = StepPlace("/site-packages/transformers/trainer.py", 10, "Trainer.train", "for x in y")
    tuned = TunedProgram(Program(run, digest(run), str(file)), facts, place)
    candidate = next(each for each in all_candidates() if each.id == name)
    made = candidate.propose(tuned).files[str(file)]
    compile(made, "train.py", "exec")
    return made


@pytest.mark.parametrize(
    ("name", "text", "new"),
    [
        ("reduce-overhead", _TRAINER, '    torch_compile_mode="reduce-overhead",\n)'),
        ("fused-optimizer", _TRAINER, '    optim="adamw_torch_fused",\n)'),
        ("bf16-autocast", _TRAINER, "    bf16=True,\n)"),
        ("loader-workers", _TRAINER, "    dataloader_num_workers=2,\n)"),
        ("max-autotune", _DERIVED, '(torch_compile=True, torch_compile_mode="max-autotune")'),
        ("fused-optimizer", _DERIVED, '(torch_compile=True, optim="adamw_torch_fused")'),
        ("bf16-autocast", _LIGHTNING, 'L.Trainer(max_steps=40, precision="bf16-mixed")'),
        ("bf16-autocast", _ACCELERATE, ', mixed_precision="bf16")'),
        ("reduce-overhead", _ACCELERATE, '(backend="inductor", mode="reduce-overhead")'),
        ("compiled-autograd", _TRAINER, "torch._dynamo.config.compiled_autograd = True\n"),
    ],
)
def test_it_is_an_argument_of_the_users_call(
    name: str, text: str, new: str, tmp_path: Path
) -> None:
    assert new in _made(name, tmp_path, text)


def test_what_is_set_already_is_not_proposed(tmp_path: Path) -> None:
    for name in ("reduce-overhead", "fused-optimizer", "bf16-autocast", "loader-workers"):
        made = _made(name, tmp_path, _TRAINER)
        with pytest.raises(Refused, match="already set"):
            _made(name, tmp_path, made)


def test_another_mode_takes_the_place_of_the_one_that_is_set(tmp_path: Path) -> None:
    text = _TRAINER.replace("max_steps=40", 'torch_compile_mode="default"')
    assert _made("max-autotune", tmp_path, text).count("torch_compile_mode") == 1


def test_arguments_that_cannot_be_seen_are_left_alone(tmp_path: Path) -> None:
    text = _TRAINER.replace("max_steps=40", "**options")
    with pytest.raises(Refused, match="cannot be seen"):
        _made("reduce-overhead", tmp_path, text)


def test_an_optimizer_without_a_name_for_it_is_left_alone(tmp_path: Path) -> None:
    facts = StepFacts(trains=True, optimizers=(OptimizerFacts(kind="SGD", has_fused=True),))
    with pytest.raises(Refused, match=r"no torch\.optim optimizer"):
        _made("fused-optimizer", tmp_path, _TRAINER, facts)
