"""Two ways to return, by a tensor, as `torch.cond`: the rest of the function is the other way."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from compilescope.fixes.breaks._branching import RULES, branch_of, replace_branch, torch_name, under
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.closures import Closures
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.layers import check_layers
from compilescope.fixes.source.local_functions import local_function
from compilescope.fixes.source.returning import Side, read_returning, returns_somewhere
from compilescope.fixes.source.truth import Truth, read_test
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    module, branch = subject.module, branch_of(subject)
    if not returns_somewhere(module, branch):
        raise NotMeant("neither side returns")
    truth = read_test(subject, branch.test)
    edit = Edit(module)
    work = _Work(subject, edit, branch)
    made = work.statements(branch, truth)
    rest = read_returning(module, branch).rest
    if not truth.static or truth.joined_by == "or":
        for statement in rest:
            edit.remove_statement(statement)
    elsewise = branch.orelse.body.body if isinstance(branch.orelse, cst.Else) else ()
    lines = [each for each in elsewise if isinstance(each, cst.BaseStatement)]
    replace_branch(edit, branch, under(edit, truth, made, branch, lines))
    return Patch(edit.files())


class _Work:
    def __init__(self, subject: Subject, edit: Edit, branch: cst.If) -> None:
        self.subject = subject
        self.edit = edit
        self.closures = Closures(subject, subject.function, branch)
        self.torch = torch_name(subject, edit)
        self.level = 0

    def statements(self, branch: cst.If, truth: Truth) -> list[cst.BaseStatement]:
        """Two functions, and what the call of one of them gives."""
        self.level += 1
        number = f"_{self.level}" if self.level > 1 else ""
        module, found = self.subject.module, read_returning(self.subject.module, branch)
        names = [module.fresh_name(f"{name}{number}") for name in ("when_true", "when_false")]
        self.closures.check(found.then.block, returns=True)
        blocks: list[Sequence[cst.CSTNode]] = [found.then.block]
        if isinstance(found.other, Side):
            self.closures.check(found.other.block, returns=True)
            self.closures.check_returned(found.then.value, found.other.value)
            blocks.append(found.other.block)
        check_layers(self.subject, blocks)
        given = self.closures.given(blocks)
        one = self._function(names[0], given, found.then)
        if isinstance(found.other, Side):
            two = self._function(names[1], given, found.other)
        else:
            further = read_test(self.subject, found.other.test)
            if further.static:
                raise Refused(f"`{further.static}` in an inner condition is not a tensor")
            *body, last = self.statements(found.other, further)
            two = local_function(names[1], given, body, last)
        operands = ", ".join(given) + ("," if len(given) == 1 else "")
        call = f"{self.torch}.cond({truth.tensor}, {names[0]}, {names[1]}, ({operands}))"
        return [one, two, self.edit.statements(f"return {call}")[0]]

    def _function(self, name: str, given: list[str], side: Side) -> cst.FunctionDef:
        last = self.edit.statements(f"return {self.closures.returned(side.value)}")[0]
        return local_function(name, given, side.before(), last)


FIX = Fix(
    id="cond-for-return",
    title="return one torch.cond instead of two branches",
    rules=RULES,
    order=61,
    kind="source",
    why="`torch.cond` puts both branches in the graph and runs the one the condition selects. "
    "It only accepts branches that change nothing and return tensors of the same shapes "
    "and dtypes.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


class Skip(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        if x.abs().max() < 0.1:
            return x / 2  # too small

        x = self.layer(x)
        return x.relu()


net = Skip().requires_grad_(False)
torch.compile(net, backend="eager")(torch.ones(3))
""",
            good="""import torch


class Skip(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        # too small
        def when_true(x):
            return x / 2
        def when_false(x):
            x = self.layer(x)
            return x.relu()
        return torch.cond(x.abs().max() < 0.1, when_true, when_false, (x,))


net = Skip().requires_grad_(False)
torch.compile(net, backend="eager")(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x @ x
    return x


torch.compile(f, backend="eager")(torch.ones(3, 3))
""",
            because="from inside a `with`",
        ),
    ),
)
