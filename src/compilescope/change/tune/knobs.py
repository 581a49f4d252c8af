"""What a framework sets for its user: an argument of a call in the user's file.

Where a trainer compiles the model and makes the optimizer, no `torch.compile` of the user's stands
there to be changed. One row for each argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

from compilescope.change.fixes.compilation.settings import set_keyword
from compilescope.change.tune.candidate import TunedProgram
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


class KnobHolder(NamedTuple):
    """An object that an argument belongs to, which the user's call may be given."""

    keyword: str
    module: str
    name: str
    plain: str = ""
    """What the call is given where it needs no such object: a keyword of the call."""
    inner: str = ""
    """What the object calls that."""


class Knob(NamedTuple):
    """An argument, of calls that are known by their names or by what else they are given."""

    argument: str
    calls: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """A call that is given one of these takes this one too, whatever it is called: classes derived
    from a trainer's arguments."""
    values: Mapping[str, str] = MappingProxyType({})
    """What it can be set to, and how it spells that; empty: anything, as it is."""
    holder: KnobHolder | None = None
    """The call is given this, which has the argument."""
    default: str | None = None
    """Another value than this is the user's own choice, and stays; None: any gives way."""
    only_for: str | None = None
    """It is set only where the call says this; None: whatever it says."""


_TRANSFORMERS = tuple(
    f"transformers.{name}"
    for kind, module in (
        ("TrainingArguments", "training_args"),
        ("Seq2SeqTrainingArguments", "training_args_seq2seq"),
    )
    for name in (kind, f"{module}.{kind}")
)
_COMPILES = ("torch_compile", "torch_compile_backend", "torch_compile_mode")
_OF_TRAINER = (*_COMPILES, "per_device_train_batch_size")
_ACCELERATORS = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
_LIGHTNING = tuple(
    f"{name}.{kind}"
    for name in (
        "lightning",
        "lightning.pytorch",
        "lightning.pytorch.trainer",
        "lightning.fabric",
        "pytorch_lightning",
        "pytorch_lightning.trainer",
        "lightning_fabric",
    )
    for kind in ("Trainer", "Fabric")
)


def _of_accelerate(
    argument: str, keyword: str, name: str, plain: str = "", inner: str = ""
) -> tuple[Knob, ...]:
    """An argument of an object that `Accelerator` takes."""
    classes = tuple(f"accelerate.{each}{name}" for each in ("", "utils.", "utils.dataclasses."))
    holder = KnobHolder(keyword, "accelerate.utils", name, plain, inner)
    return Knob(argument, classes), Knob(argument, _ACCELERATORS, holder=holder)


def _of_dynamo_plugin(argument: str) -> tuple[Knob, ...]:
    plugin = "dynamo_plugin", "TorchDynamoPlugin", "dynamo_backend", "backend"
    return _of_accelerate(argument, *plugin)


TRAINER = (Knob("torch_compile", beside=_COMPILES),)
MODE = (Knob("torch_compile_mode", beside=_COMPILES), *_of_dynamo_plugin("mode"))
DYNAMIC = _of_dynamo_plugin("dynamic")
REGIONAL = _of_dynamo_plugin("use_regional_compilation")
FUSED_OPTIMIZER = (
    Knob("optim", _TRANSFORMERS, beside=_OF_TRAINER, values={"AdamW": '"adamw_torch_fused"'}),
)
BFLOAT16 = (
    Knob("bf16", _TRANSFORMERS, beside=_OF_TRAINER, values={"": "True"}),
    Knob("mixed_precision", _ACCELERATORS, values={"": '"bf16"'}),
    Knob("precision", _LIGHTNING, values={"": '"bf16-mixed"'}),
)
LOADER_WORKERS = (Knob("dataloader_num_workers", _TRANSFORMERS, beside=_OF_TRAINER, default="0"),)
PINNED = (Knob("dataloader_pin_memory", _TRANSFORMERS, beside=_OF_TRAINER, only_for="False"),)
NON_BLOCKING = (
    Knob(
        "accelerator_config",
        _TRANSFORMERS,
        beside=_OF_TRAINER,
        values={"True": '{"non_blocking": True}'},
        default="None",
    ),
    *_of_accelerate("non_blocking", "dataloader_config", "DataLoaderConfiguration"),
)


_VARIABLES = {
    "mode": "ACCELERATE_DYNAMO_MODE",
    "use_regional_compilation": "ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION",
}
"""What accelerate's plugin reads where its argument is not given (accelerate 1.2 to 1.15)."""


def set_variable(tuned: TunedProgram, argument: str, value: str) -> dict[str, str]:
    """New texts of a program that is told on its command line to compile, so that no call in it can
    be given the argument; empty where it is not accelerate that compiles."""
    if not _is_compiled_by_accelerate(tuned):
        return {}
    name = _VARIABLES[argument]
    if tuned.modules(name):
        raise Refused(f"{name} is already set")
    edit = tuned.main_edit()
    line = f'{edit.module_name("os")}.environ["{name}"] = "{value}"'
    edit.put_setting(line, "os", apart=True)
    return edit.files()


def _is_compiled_by_accelerate(tuned: TunedProgram) -> bool:
    """By an `Accelerator` of the user's, or of the trainer that the run went through."""
    run = tuned.program.run
    through = {frame.file for event in run.events for frame in event.stack}
    if any(PurePath(file).parts[-2:] == ("transformers", "trainer.py") for file in through):
        return True
    return any(
        isinstance(node, cst.Call) and module.calls(node, *_ACCELERATORS)
        for module in tuned.modules("Accelerator")
        for node in module.walk()
    )


def set_knob(tuned: TunedProgram, knobs: tuple[Knob, ...], value: str) -> dict[str, str]:
    """New texts in which the calls have the argument; empty where the program has no such call.
    Raises `Refused` where it is given already."""
    edits: dict[str, Edit] = {}
    for module, knob, call in knob_calls(tuned, knobs):
        if any(arg.star for arg in call.args):
            raise Refused(f"what `{module.code(call.func)}` is given cannot be seen")
        if knob.values and value not in knob.values:
            continue
        edit = edits.setdefault(module.path, Edit(module))
        _set(edit, call, knob, knob.values.get(value, value))
    return {path: text for edit in edits.values() for path, text in edit.files().items()}


def _set(edit: Edit, call: cst.Call, knob: Knob, spelled: str) -> None:
    if knob.holder is not None:
        _give_holder(edit, call, knob.holder, f"{knob.argument}={spelled}")
        return
    known = keywords_of(call).get(knob.argument)
    told = "" if known is None else edit.module.code(known.value).replace("'", '"')
    if told == spelled:
        raise Refused(f"{knob.argument}={spelled} is already set")
    if known is not None and knob.default not in (None, told):
        raise Refused(f"{knob.argument}={told} is already set")
    set_keyword(edit, call, knob.argument, spelled)


def _give_holder(edit: Edit, call: cst.Call, holder: KnobHolder, given: str) -> None:
    """`Accelerator(dynamo_backend="inductor")` gets a plugin of that backend instead."""
    known = keywords_of(call).get(holder.plain)
    if known is not None:
        given = f"{holder.inner}={edit.module.code(known.value)}, {given}"
    name = edit.imported_name(holder.module, holder.name)
    set_keyword(edit, call, holder.keyword, f"{name}({given})", instead=known)


def keywords_of(call: cst.Call) -> dict[str, cst.Arg]:
    return {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}


def last_names(calls: Iterable[str]) -> list[str]:
    """`DataLoader` of `torch.utils.data.DataLoader`: a file that calls it says so."""
    return [call.rpartition(".")[2] for call in calls]


def knob_calls(
    tuned: TunedProgram, knobs: tuple[Knob, ...]
) -> Iterator[tuple[SourceModule, Knob, cst.Call]]:
    """Calls in the user's files that take one of them."""
    words = {name for knob in knobs for name in (*knob.beside, *last_names(knob.calls))}
    for module in tuned.modules(*words):
        for node in module.walk():
            if isinstance(node, cst.Call):
                knob = next((each for each in knobs if _takes(module, node, each)), None)
                if knob is not None:
                    yield module, knob, node


def _takes(module: SourceModule, call: cst.Call, knob: Knob) -> bool:
    given = keywords_of(call)
    if not given.keys() & set(knob.beside) and not (knob.calls and module.calls(call, *knob.calls)):
        return False
    if knob.only_for is not None:
        known = given.get(knob.argument)
        return known is not None and module.code(known.value) == knob.only_for
    holder = knob.holder
    return holder is None or (
        holder.keyword not in given and (not holder.plain or holder.plain in given)
    )
