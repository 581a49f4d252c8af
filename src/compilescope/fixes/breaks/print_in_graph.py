"""Output that stays where it is: an operator with an effect, which a graph can hold."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.outlining import outline
from compilescope.fixes.source.outputs import is_told_once, output_call, output_of
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    call = output_call(subject)
    kind = output_of(subject.module, call) or "log"
    if kind == "warn" or is_told_once(call):
        # The line that is named, and what counts as a repetition, would be the operator's.
        raise Refused("a warning names the line it comes from and is shown once per line")
    edit = Edit(subject.module)
    outline(subject, edit, call, "show" if kind == "progress" else kind)
    return Patch(edit.files())


FIX = Fix(
    id="print-in-graph",
    title="make the output an operator in the graph",
    rules=frozenset(
        {
            "print-call",
            "logging-call",
            "scalar-extraction",
            "numpy-call",
            "outside-call",
            "GB0109",
            "GB0569",
        }
    ),
    order=60,
    kind="source",
    why="The graph itself calls a custom operator with an ordered effect: at the same place, "
    "as often, and with the same values. Eager runs call it too.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


# One step.
def f(x):
    y = x + 1
    # Where are we?
    print("step", y.mean().item(), sep=": ", end="!\\n")  # every step
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


@torch.library.custom_op("program::print_in_f", mutates_args=())
def print_in_f(y: torch.Tensor) -> None:
    print("step", y.mean().item(), sep=": ", end="!\\n")


print_in_f.register_fake(lambda y: None)
print_in_f.register_effect(torch._library.effects.EffectType.ORDERED)


# One step.
def f(x):
    y = x + 1
    # Where are we?
    print_in_f(y)  # every step
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import logging
import torch as th

log = logging.getLogger("train")


class Net(th.nn.Module):
    def forward(self, x):
        for number in range(2):
            x = x * 2
            log.info(
                "layer %d: %s",  # for the curious
                number,
                [round(v, 2) for v in x.tolist()],
            )
        return x


net = th.compile(Net(), backend="eager")
net(th.ones(3))
""",
            good="""import logging
import torch as th

log = logging.getLogger("train")


@th.library.custom_op("program::log_in_net_forward", mutates_args=())
def log_in_net_forward(number: int, x: th.Tensor) -> None:
    log.info(
        "layer %d: %s",  # for the curious
        number,
        [round(v, 2) for v in x.tolist()],
    )


log_in_net_forward.register_fake(lambda number, x: None)
log_in_net_forward.register_effect(th._library.effects.EffectType.ORDERED)


class Net(th.nn.Module):
    def forward(self, x):
        for number in range(2):
            x = x * 2
            log_in_net_forward(number, x)
        return x


net = th.compile(Net(), backend="eager")
net(th.ones(3))
""",
            note="The logger is the module's; what the call reads of its function is handed over.",
        ),
        FixExample(
            bad="""import torch

STEP = 0


def f(x):
    global STEP
    STEP += 1
    print("step", STEP, x.sum().item())
    return x * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3))
g(torch.ones(3))
""",
            good="""import torch

STEP = 0


@torch.library.custom_op("program::print_in_f", mutates_args=())
def print_in_f(STEP: int, x: torch.Tensor) -> None:
    print("step", STEP, x.sum().item())


print_in_f.register_fake(lambda STEP, x: None)
print_in_f.register_effect(torch._library.effects.EffectType.ORDERED)


def f(x):
    global STEP
    STEP += 1
    print_in_f(STEP, x)
    return x * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3))
g(torch.ones(3))
""",
            note="compiled code sets a global only when its graph has ended",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    y = x * 2
    print("mean", y.mean())
    return y


torch.compile(f, backend="eager")(torch.ones(3, requires_grad=True))
""",
            because="without its `grad_fn`",
        ),
        RefusalExample(
            program="""import torch


class Meter:
    count = 0


meter = Meter()


def f(x):
    meter.count += 1
    print("call", meter.count, x.sum().item())
    return x * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3))
g(torch.ones(3))
""",
            because="`meter` is changed in a function",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    y = x + 1
    done = print("step") or y
    return done * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="part of a larger statement",
        ),
        RefusalExample(
            program="""import logging
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log = logging.getLogger("net")

    def forward(self, x):
        y = x + 1
        self.log.info("mean %s", y)
        return y * 2


torch.compile(Net(), backend="eager")(torch.ones(3))
""",
            because="`self.log` is not a tensor",
        ),
    ),
)
