"""What happens only in the first call happens eagerly, and the second call is compiled."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch
from compilescope.fixes.source.guarded import compilation_number
from compilescope.fixes.source.laziness import runs_once
from compilescope.fixes.source.stance import eager_then_compile
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import GraphBreak

_CATEGORIES = (
    "data-dependent-branch",
    "data-dependent-operator",
    "dynamic-shape-operator",
    "scalar-extraction",
    "skipped-function",
    "logging",
    "exception",
    "unsupported-builtin",
    "context-manager",
    "generator",
    "class-construction",
    "extension",
    "mutation",
    "autograd",
    "rng-device-state",
    "reconstruction",
)


def _propose(subject: Subject) -> Patch:
    runs_once(subject)
    if not _is_of_first_call(subject):
        raise NotMeant("it happens in a later call, not in the function's first call")
    return eager_then_compile(subject)


def _is_of_first_call(subject: Subject) -> bool:
    """Was it seen in the first compilation of its function?"""
    wanted = set(subject.finding.because)
    ids = [
        event.compile_id
        for event, _ in subject.program.run.of(GraphBreak)
        if event.id in wanted and event.compile_id
    ]
    return not ids or any(compilation_number(each) == 0 for each in ids)


FIX = Fix(
    id="compile-second-call",
    title="run the first call eagerly",
    rules=frozenset(f"category/{each}" for each in _CATEGORIES),
    order=130,
    kind="caller",
    why="With the stance `eager_then_compile`, each function is compiled on its second call. "
    "Whatever a library sets up on the first call (hooks, caches, a warning) is done by "
    "then.",
    propose=_propose,
    examples=(
        FixExample(
            bad='''"""Trains."""
import threading

import torch

lock = threading.Lock()


class Net(torch.nn.Module):
    def forward(self, x):
        if not hasattr(self, "table"):
            with lock:
                self.table = torch.arange(3.0)
        return x * self.table


net = torch.compile(Net(), backend="eager")
for _ in range(3):
    net(torch.ones(3))
''',
            good='''"""Trains."""
import threading

import torch

torch.compiler.set_stance("eager_then_compile")

lock = threading.Lock()


class Net(torch.nn.Module):
    def forward(self, x):
        if not hasattr(self, "table"):
            with lock:
                self.table = torch.arange(3.0)
        return x * self.table


net = torch.compile(Net(), backend="eager")
for _ in range(3):
    net(torch.ones(3))
''',
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import threading

import torch

lock = threading.Lock()


@torch.compile(backend="eager")
def f(x):
    with lock:
        x = x * 2
    return x + 1


for _ in range(3):
    f(torch.ones(3))
""",
            because="first call only",
        ),
    ),
)
