"""Arguments of a framework's call, where the program compiles nothing by itself. Nothing is run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from builders import event, frame, run_of
from compilescope.change.fixes.subject import Program
from compilescope.change.tune.candidate import (
    BlockFacts,
    OptimizerFacts,
    StepFacts,
    TunedProgram,
    all_candidates,
)
from compilescope.change.tune.step_place import StepPlace
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.bodies import CacheEntryMiss, FailedGuard, GraphCaptured, Recompile
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef

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
_PLAIN_ACCELERATE = """import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator(dynamo_backend="inductor", cpu=True)
loader = DataLoader(data, batch_size=4)
"""
_FACTS = StepFacts(
    devices=("cuda",),
    dtypes=("torch.float32",),
    trains=True,
    optimizers=(OptimizerFacts(kind="AdamW", has_fused=True),),
    bf16=True,
    capability=(9, 0),
    blocks=(BlockFacts("bert.encoder.layer", "BertLayer", 12),),
    cache_artifacts=True,
)
_GRAPH = GraphCaptured(stage="dynamo", text="", nodes=1, ops=1, backend="inductor")


def _made(name: str, tmp_path: Path, text: str, facts: StepFacts = _FACTS, *also: Event) -> str:
    file = tmp_path / "train.py"
    file.write_text(text)
    run = run_of(event(_GRAPH), *also)
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
        (
            "max-autotune",
            _PLAIN_ACCELERATE,
            'dynamo_plugin=TorchDynamoPlugin(backend="inductor", mode="max-autotune"), cpu=True)',
        ),
        ("max-autotune", _PLAIN_ACCELERATE, "from accelerate.utils import TorchDynamoPlugin\n"),
        ("regional-compilation", _PLAIN_ACCELERATE, ", use_regional_compilation=True), cpu=True)"),
        ("regional-compilation", _ACCELERATE, ", use_regional_compilation=True)"),
        ("async-transfers", _TRAINER, '    accelerator_config={"non_blocking": True},\n)'),
        (
            "async-transfers",
            _PLAIN_ACCELERATE,
            ", cpu=True, dataloader_config=DataLoaderConfiguration(non_blocking=True))\n"
            "loader = DataLoader(data, batch_size=4, pin_memory=True)",
        ),
        ("mega-cache", _TRAINER, "torch.compiler.load_cache_artifacts("),
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


def test_another_backend_stays_as_it_is_said(tmp_path: Path) -> None:
    text = _PLAIN_ACCELERATE.replace('"inductor"', "options.backend")
    assert "Plugin(backend=options.backend, mode=" in _made("max-autotune", tmp_path, text)


def test_what_the_user_has_chosen_stays(tmp_path: Path) -> None:
    workers = _TRAINER.replace("max_steps=40", "dataloader_num_workers=8")
    with pytest.raises(Refused, match="dataloader_num_workers=8 is already set"):
        _made("loader-workers", tmp_path, workers)
    config = _TRAINER.replace("max_steps=40", "accelerator_config=config")
    with pytest.raises(Refused, match="accelerator_config=config is already set"):
        _made("async-transfers", tmp_path, config)
    pinned = _TRAINER.replace("max_steps=40", "dataloader_pin_memory=False")
    assert "dataloader_pin_memory=True" in _made("async-transfers", tmp_path, pinned)


def test_a_trainer_is_handed_a_model_whose_blocks_are_compiled(tmp_path: Path) -> None:
    """What the trainer was told of compiling goes; what it does besides stays."""
    made = _made("regional-compilation", tmp_path, _TRAINER)
    assert "torch_compile" not in made and "tf32" not in made
    assert (
        "    max_steps=40,\n)\nfor block in model.bert.encoder.layer:\n    block.compile()\n"
        in made
    )
    facts = msgspec.structs.replace(_FACTS, matmul_precision="high")
    text = _TRAINER.replace("torch_compile=True", 'torch_compile_mode="max-autotune"')
    made = _made("regional-compilation", tmp_path, text, facts)
    assert "    tf32=True,\n)\n" in made and 'block.compile(mode="max-autotune")' in made


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("torch_compile=True", "torch_compile=options.compile", "while the program runs"),
        ("model=model", "model=build()", "no model with a name"),
        ("max_steps=40", "**options", "cannot be seen"),
    ],
)
def test_a_model_that_cannot_be_handed_over(
    old: str, new: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match=reason):
        _made("regional-compilation", tmp_path, _TRAINER.replace(old, new))


def test_shapes_are_a_flag_where_the_framework_has_no_argument(tmp_path: Path) -> None:
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]")
    again = event(Recompile(CodeRef("train.py", 1, "forward"), (CacheEntryMiss("0/0", (guard,)),)))
    made = _made("dynamic-shapes", tmp_path, _TRAINER, _FACTS, again)
    assert "torch._dynamo.config.assume_static_by_default = False\n" in made
    made = _made("static-shapes", tmp_path, _PLAIN_ACCELERATE, _FACTS, again)
    assert 'TorchDynamoPlugin(backend="inductor", dynamic=False)' in made


_PARSED = """from transformers import HfArgumentParser, Trainer, TrainingArguments

(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=model, args=arguments, train_dataset=data).train()
"""


def test_a_trainer_that_the_command_line_tells_to_compile(tmp_path: Path) -> None:
    """By what its accelerate reads where no argument says it."""
    stack = (frame(1, file="/site-packages/transformers/trainer.py", origin="library"),)
    through = event(_GRAPH, stack=stack)
    made = _made("max-autotune", tmp_path, _PARSED, _FACTS, through)
    assert '\nos.environ["ACCELERATE_DYNAMO_MODE"] = "max-autotune"\n' in made
    assert made.startswith("import os\n")
    with pytest.raises(Refused, match="ACCELERATE_DYNAMO_MODE is already set"):
        _made("max-autotune", tmp_path, made, _FACTS, through)
    made = _made("regional-compilation", tmp_path, _PARSED, _FACTS, through)
    assert 'os.environ["ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION"] = "true"\n' in made


def test_a_library_that_is_told_elsewhere_how_to_compile(tmp_path: Path) -> None:
    for name in ("max-autotune", "regional-compilation"):
        with pytest.raises(Refused, match="a library compiles"):
            _made(name, tmp_path, _PARSED)


def test_arguments_that_cannot_be_seen_are_left_alone(tmp_path: Path) -> None:
    text = _TRAINER.replace("max_steps=40", "**options")
    with pytest.raises(Refused, match="cannot be seen"):
        _made("reduce-overhead", tmp_path, text)


def test_an_optimizer_without_a_name_for_it_is_left_alone(tmp_path: Path) -> None:
    facts = StepFacts(trains=True, optimizers=(OptimizerFacts(kind="SGD", has_fused=True),))
    with pytest.raises(Refused, match=r"no torch\.optim optimizer"):
        _made("fused-optimizer", tmp_path, _TRAINER, facts)
