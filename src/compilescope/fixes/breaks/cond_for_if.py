"""A branch on a tensor as `torch.cond`: a graph with two ways, of which one is run."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.breaks._branching import RULES, branch_of, replace_branch, torch_name, under
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.closures import Closures
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.local_functions import local_function
from compilescope.fixes.source.returning import returns_somewhere
from compilescope.fixes.source.truth import Truth, read_test
from compilescope.fixes.source.values import is_static
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    branch = branch_of(subject)
    if returns_somewhere(subject.module, branch):
        raise NotMeant("one side returns")
    truth = read_test(subject, branch.test)
    edit = Edit(subject.module)
    work = _Work(subject, edit, branch)
    results = work.closures.results(work.blocks(branch))
    work.closures.check_sides(work.blocks(branch), results)
    inside = work.statements(branch, truth, results)
    elsewise = [each for each in work.other(branch) if isinstance(each, cst.BaseStatement)]
    if truth.static and isinstance(branch.orelse, cst.If):
        raise Refused(f"`{truth.static}` in its condition is not a tensor, and an `elif` follows")
    replace_branch(edit, branch, under(edit, truth, inside, branch, elsewise))
    return Patch(edit.files())


class _Work:
    def __init__(self, subject: Subject, edit: Edit, branch: cst.If) -> None:
        self.subject = subject
        self.edit = edit
        self.closures = Closures(subject, subject.function, branch)
        self.torch = torch_name(subject, edit)
        self.level = 0

    def blocks(self, branch: cst.If) -> list[list[cst.CSTNode]]:
        """The bodies of all sides, those of each `elif` too."""
        found = [list(branch.body.body)]
        if isinstance(branch.orelse, cst.If):
            return [*found, *self.blocks(branch.orelse)]
        return [*found, self.other(branch)]

    def other(self, branch: cst.If) -> list[cst.CSTNode]:
        if isinstance(branch.orelse, cst.Else):
            return list(branch.orelse.body.body)
        return []

    def statements(
        self, branch: cst.If, truth: Truth, results: list[str]
    ) -> list[cst.BaseStatement]:
        """Two functions and a call; an `elif` is the same inside the second one."""
        self.level += 1
        number = f"_{self.level}" if self.level > 1 else ""
        module, closures = self.subject.module, self.closures
        names = [module.fresh_name(f"{name}{number}") for name in ("when_true", "when_false")]
        given = closures.given(self.blocks(branch))
        then = list(branch.body.body)
        closures.check(then)
        one = self._function(names[0], given, then, results)
        if isinstance(branch.orelse, cst.If):
            inner = branch.orelse
            if is_static(self.subject, inner.test):
                raise Refused(f"`{module.code(inner.test)}` in an inner condition is not a tensor")
            further = read_test(self.subject, inner.test)
            if further.static:
                raise Refused(f"`{further.static}` in an inner condition is not a tensor")
            body = self.statements(inner, further, results)
            last = self._line(f"return {', '.join(results)}")
            two = local_function(names[1], given, body, last)
        else:
            other = self.other(branch)
            closures.check(other)
            two = self._function(names[1], given, other, results)
        operands = ", ".join(given) + ("," if len(given) == 1 else "")
        call = f"{self.torch}.cond({truth.tensor}, {names[0]}, {names[1]}, ({operands}))"
        return [one, two, self._line(f"{', '.join(results)} = {call}")]

    def _function(
        self, name: str, given: list[str], body: list[cst.CSTNode], results: list[str]
    ) -> cst.FunctionDef:
        last = self._line(f"return {self.closures.handed_out(body, results)}")
        return local_function(name, given, body, last)

    def _line(self, text: str) -> cst.BaseStatement:
        return self.edit.statements(text)[0]


FIX = Fix(
    id="cond-for-if",
    title="use torch.cond instead of the if",
    rules=RULES,
    order=60,
    kind="source",
    why="`torch.cond` puts both sides in the graph and runs the one the condition selects, so "
    "a side that is expensive or must not be computed is still skipped. It only accepts "
    "sides that change nothing and return tensors of the same shapes and dtypes.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(3, 3)
        self.deep = torch.nn.Linear(3, 3)

    def forward(self, x):
        # By the mean.
        if x.mean() > 0:
            # Much.
            h = self.wide(x)
            x = h.relu()
        else:
            x = self.deep(x)
        return x + 1


net = Net().requires_grad_(False)
torch.compile(net, backend="eager")(torch.ones(3))
""",
            good="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(3, 3)
        self.deep = torch.nn.Linear(3, 3)

    def forward(self, x):
        # By the mean.
        def when_true(x):
            # Much.
            h = self.wide(x)
            x = h.relu()
            return x
        def when_false(x):
            x = self.deep(x)
            return x.clone()
        x = torch.cond(x.mean() > 0, when_true, when_false, (x,))
        return x + 1


net = Net().requires_grad_(False)
torch.compile(net, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import torch


def f(x, y):
    if x.min() > 0: z = x.log() @ y
    elif y.min() > 0:
        z = y.log()
        z -= 1
    else:
        z = x
    return z * 2


torch.compile(f, backend="eager")(torch.ones(3, 3), torch.ones(3, 3))
""",
            good="""import torch


def f(x, y):
    def when_true():
        z = x.log() @ y
        return z
    def when_false():
        def when_true_2():
            z = y.log()
            z = z - 1
            return z
        def when_false_2():
            z = x
            return z.clone()
        z = torch.cond(y.min() > 0, when_true_2, when_false_2, ())
        return z
    z = torch.cond(x.min() > 0, when_true, when_false, ())
    return z * 2


torch.compile(f, backend="eager")(torch.ones(3, 3), torch.ones(3, 3))
""",
            note="What a side was given and gives back unchanged must be a copy for `torch.cond`.",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.near = torch.nn.Linear(3, 3)
        self.far = torch.nn.Linear(3, 3)

    def forward(self, x):
        if x.mean() > 0:
            y = self.near(x)
        else:
            y = self.far(x)
        return y * 2


torch.compile(Net(), backend="eager")(torch.ones(3)).sum().backward()
""",
            because="zero gradients",
        ),
        RefusalExample(
            program="""import torch


class Count(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        if x.sum() > 0:
            self.steps = self.steps + 1
            x = x @ x
        return x + 1


torch.compile(Count(), backend="eager")(torch.ones(3, 3))
""",
            because="sets `self.steps`",
        ),
    ),
)
