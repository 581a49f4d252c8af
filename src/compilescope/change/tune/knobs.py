"""What a framework sets for its user: an argument of a call in the user's file.

Where a trainer compiles the model and makes the optimizer, no `torch.compile` of the user's stands
there to be changed. One row for each argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from compilescope.change.fixes.compilation.settings import set_keyword
from compilescope.change.tune.candidate import TunedProgram
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


class Knob(NamedTuple):
    """An argument, of calls that are known by their names or by what else they are given."""

    argument: str
    calls: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """A call that is given one of these takes this one too, whatever it is called: classes derived
    from a trainer's arguments."""
    values: Mapping[str, str] = MappingProxyType({})
    """What it can be set to, and how it spells that; empty: anything, as it is."""


_TRANSFORMERS = (
    "transformers.TrainingArguments",
    "transformers.Seq2SeqTrainingArguments",
    "transformers.training_args.TrainingArguments",
    "transformers.training_args_seq2seq.Seq2SeqTrainingArguments",
)
_COMPILES = ("torch_compile", "torch_compile_backend", "torch_compile_mode")
_OF_TRAINER = (*_COMPILES, "per_device_train_batch_size")
_PLUGINS = tuple(
    f"accelerate.{name}"
    for name in ("utils.TorchDynamoPlugin", "utils.dataclasses.TorchDynamoPlugin")
)
_ACCELERATORS = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
_LIGHTNING = tuple(
    f"{name}.{kind}"
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning", "lightning.fabric")
    for kind in ("Trainer", "Fabric")
)

MODE = (
    Knob("torch_compile_mode", beside=_COMPILES),
    Knob("mode", _PLUGINS),
)
FUSED_OPTIMIZER = (
    Knob("optim", _TRANSFORMERS, beside=_OF_TRAINER, values={"AdamW": '"adamw_torch_fused"'}),
)
BFLOAT16 = (
    Knob("bf16", _TRANSFORMERS, beside=_OF_TRAINER, values={"": "True"}),
    Knob("mixed_precision", _ACCELERATORS, values={"": '"bf16"'}),
    Knob("precision", _LIGHTNING, values={"": '"bf16-mixed"'}),
)
LOADER_WORKERS = (Knob("dataloader_num_workers", _TRANSFORMERS, beside=_OF_TRAINER),)


def set_knob(tuned: TunedProgram, knobs: tuple[Knob, ...], value: str) -> dict[str, str]:
    """New texts in which the calls have the argument; empty where the program has no such call.
    Raises `Refused` where it is given already."""
    edits: dict[str, Edit] = {}
    for module in tuned.modules:
        for knob, call in _calls(module, knobs):
            if any(arg.star for arg in call.args):
                raise Refused(f"what `{module.code(call.func)}` is given cannot be seen")
            given = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
            if knob.values and value not in knob.values:
                continue
            spelled = knob.values.get(value, value)
            known = given.get(knob.argument)
            if known is not None and module.code(known.value).replace("'", '"') == spelled:
                raise Refused(f"{knob.argument}={spelled} is already set")
            edit = edits.setdefault(module.path, Edit(module))
            set_keyword(edit, call, knob.argument, spelled)
    return {path: text for edit in edits.values() for path, text in edit.files().items()}


def _calls(module: SourceModule, knobs: tuple[Knob, ...]) -> Iterator[tuple[Knob, cst.Call]]:
    for node in module.walk():
        if not isinstance(node, cst.Call):
            continue
        given = {arg.keyword.value for arg in node.args if arg.keyword is not None}
        for knob in knobs:
            if given & set(knob.beside) or (knob.calls and module.calls(node, *knob.calls)):
                yield knob, node
                break
