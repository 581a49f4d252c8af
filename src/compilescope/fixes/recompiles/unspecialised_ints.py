"""Ints on modules become variables of the graph: a flag, with `dynamic=True`."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch
from compilescope.fixes.source.compiling import main_edit, put_setting, set_argument
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.needed_numbers import check_counted, check_not_needed
from compilescope.fixes.source.regions import region_of
from compilescope.fixes.subject import Subject

_FLAG = "allow_unspec_int_on_nn_module"
_STATES = f"`torch._dynamo.config.{_FLAG}` is True for the whole program."


def _propose(subject: Subject) -> Patch:
    if cause_of(subject).subject.startswith("G["):
        raise NotMeant("the flag does not affect an int in a global")
    check_not_needed(subject)
    check_counted(subject)
    main = main_edit(subject)
    put_setting(main, f"{main.module_name('torch')}._dynamo.config.{_FLAG} = True")
    files: dict[str, str] = {}
    region = region_of(subject)
    known = region.argument("dynamic")
    if known is None or region.module.code(known.value) != "True":
        # The flag alone leaves the first recompile, after which the int varies.
        same = region.module.path == main.module.path
        edit = main if same else Edit(region.module)
        set_argument(edit, region, "dynamic", "True")
        files.update({} if same else edit.files())
    files.update(main.files())
    return Patch(files, states=_STATES)


FIX = Fix(
    id="unspecialised-ints",
    title="let ints on modules be dynamic",
    rules=frozenset({"recompile/module-number", "recompile/layer-index"}),
    order=120,
    kind="config",
    why="Dynamo treats an int attribute of a module as a constant unless the flag is set. "
    "Where a line needs the number itself (a `range`, an index into a list), it stays "
    "constant.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        self.step += 1
        return x * self.step


compiled = torch.compile(Net(), backend="eager")
for _ in range(4):
    compiled(torch.ones(3))
""",
            good="""import torch

torch._dynamo.config.allow_unspec_int_on_nn_module = True


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        self.step += 1
        return x * self.step


compiled = torch.compile(Net(), backend="eager", dynamic=True)
for _ in range(4):
    compiled(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 2

    def forward(self, x):
        if x.shape[0] > self.longest:
            self.longest = x.shape[0]
        return x * self.longest


net = torch.compile(Net(), backend="eager")
for size in (3, 5, 4, 7):
    net(torch.ones(size))
""",
            because="may set it to a size",
        ),
        RefusalExample(
            program="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = 1

    def forward(self, x):
        for _ in range(self.depth):
            x = x * 2
        return x


net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(3):
    compiled(torch.ones(3))
    net.depth += 1
""",
            because="needs the number itself",
        ),
        RefusalExample(
            program="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    @torch.compile(**{"backend": "eager"})
    def forward(self, x):
        return x * self.step


net = Net()
for _ in range(4):
    net(torch.ones(3))
    net.step += 1
""",
            because="options from a dict",
        ),
    ),
)
