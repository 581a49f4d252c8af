"""What is said of a program: its examples get it, and what it says makes them whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compilescope.apps.front import Capture
from compilescope.base.plugins import discover
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.rules import programs
from compilescope.knowledge.rules.causes import explanations
from compilescope.knowledge.rules.causes.rule import ProgramRule
from compilescope.knowledge.source.examples import Example
from rules.test_rules import name, play

pytestmark = pytest.mark.torch

RULES = discover(programs, "RULE", ProgramRule)
EXAMPLES = [(rule, example) for rule in RULES for example in rule.examples]
REMEDIED = [(rule, example) for rule, example in EXAMPLES if example.good]


def causes(run: Capture) -> list[Finding]:
    recompiles = [cause for frame in run.recompiles for cause in frame.causes]
    return [*run.failures, *run.breaks, *recompiles]


def said(run: Capture) -> list[str]:
    """What is said of the program, each once."""
    remedies = [remedy for cause in causes(run) for remedy in cause.remedy]
    return list(dict.fromkeys(each.text for each in remedies if each.kind == "program"))


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=name)
def test_a_program_gets_the_words_of_its_rule(
    rule: ProgramRule, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanations, "_PROGRAM_RULES", [rule])
    run, _ = play(example.bad, tmp_path)
    words = said(run)
    assert words, [cause.title for cause in causes(run)]
    for text in words:
        assert text.endswith(".") and "\n" not in text
        assert text.count("`") % 2 == 0
        assert "recompile_limit" not in text
    first = [cause for cause in causes(run) if any(r.text in words for r in cause.remedy)]
    assert all(cause.remedy[0].kind == "program" for cause in first)


@pytest.mark.parametrize(("rule", "example"), REMEDIED, ids=name)
def test_what_it_says_helps_and_changes_nothing_else(
    rule: ProgramRule, example: Example, tmp_path: Path
) -> None:
    _, before = play(example.bad, tmp_path)
    run, after = play(example.good, tmp_path)
    assert causes(run) == []
    assert before == after != ""


QUIET = {
    "a branch that returns a tensor": """
import torch
def clean(x):
    if x.isnan().any():
        x = torch.nan_to_num(x)
    return x
@torch.compile(backend="eager")
def f(x):
    return clean(x * 2) + 1
f(torch.randn(3))
""",
    "what is joined is not kept": """
import torch
class Skip(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(2, 2, 3, padding=1)
    def forward(self, x):
        return torch.cat([x, self.conv(x)], dim=1)
f = torch.compile(Skip(), backend="eager", dynamic=False)
for n in (8, 10, 12):
    f(torch.randn(1, 2, n))
""",
    "a number of layers": """
import torch
lin = torch.nn.Linear(3, 3)
@torch.compile(backend="eager", dynamic=False)
def run(x, depth):
    for _ in range(depth):
        x = lin(x)
    return x
for d in (1, 2, 3):
    run(torch.ones(2, 3), d)
""",
    "an attribute that the program sets, not the compiled code": """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.shift = torch.nn.Linear(3, 3), None
    def forward(self, x):
        y = self.lin(x)
        if self.shift is None:
            return y
        return y + self.shift
n = Net()
f = torch.compile(n, backend="eager")
f(torch.ones(2, 3))
n.shift = torch.ones(3)
f(torch.ones(2, 3))
""",
    "a break in the forward of a step": """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 1)
    def forward(self, x):
        y = self.lin(x)
        if y.sum() > 100:
            y = y * 2
        return y
net = Net()
@torch.compile(backend="eager")
def step(x):
    return net(x).mean()
step(torch.ones(2, 3)).backward()
""",
}


@pytest.mark.parametrize("program", QUIET.values(), ids=QUIET)
def test_nothing_is_said_of_a_program_that_only_looks_like_one(
    program: str, tmp_path: Path
) -> None:
    run, _ = play(program, tmp_path)
    assert causes(run) and said(run) == []


def test_a_guard_that_failed_at_once_is_about_its_argument(tmp_path: Path) -> None:
    run, _ = play(
        """
import torch
class Model(torch.nn.Module):
    def forward(self, x, beta):
        return x.clamp(min=0.05 * (1 - beta)) * beta
fast = torch.compile(Model(), backend="aot_eager")
try:
    for step in range(8):
        beta = step / 8
        fast(torch.ones(3, requires_grad=True), beta)
except AssertionError:
    pass
""",
        tmp_path,
    )
    assert run.recompiles and all(each.remedy[0].kind == "program" for each in causes(run))
    for failure in run.failures:
        assert "Guard failed on the same frame" in failure.text
    (words,) = said(run)
    assert "`fast(torch.ones(3, requires_grad=True), torch.tensor(beta))`" in words
    assert "takes `0.05 * (1 - beta)` as a Python number" in words


HOOKS = {
    "by its name": "net.register_forward_hook(hook)",
    "by what made it": "net.register_forward_hook(made())",
}


@pytest.mark.parametrize("way", HOOKS)
def test_nothing_is_returned_from_a_hook(way: str, tmp_path: Path) -> None:
    program = f"""
import torch
seen = {{}}
def hook(module, args, output):
    seen["last"] = output.mean().item()
def made():
    def inner(module, args, output):
        seen["last"] = output.mean().item()
    return inner
net = torch.nn.Sequential(torch.nn.Linear(3, 3))
{HOOKS[way].replace("net.", "net[0].")}
torch.compile(net, backend="eager")(torch.ones(2, 3))
"""
    run, _ = play(program, tmp_path)
    (found,) = run.breaks
    assert not any(each.text.startswith("Return") for each in found.remedy)
    assert "detached" in found.remedy[0].text and "hook" in found.remedy[0].text


def test_a_backend_of_the_users_own(tmp_path: Path) -> None:
    program = """
import torch
class Unsupported(RuntimeError): ...
def edge(gm, inputs):
    for node in gm.graph.nodes:
        if node.target == "abs":
            raise Unsupported(f"operator {node.target!r} is not implemented")
    return gm.forward
@torch.compile(backend=edge)
def f(x):
    return x.abs() + 1
try:
    f(torch.ones(3))
except Exception:
    pass
"""
    run, _ = play(program, tmp_path)
    (failure,) = run.failures
    (remedy, *_) = failure.remedy
    assert "`edge`" in remedy.text and "program.py:7" in remedy.text
    assert "`abs`" in remedy.text and "`x.abs()` (line 11)" in remedy.text


LIBRARIES = {
    "torchmetrics": (
        """
class Mean:
    def __init__(self):
        self.total, self.count = 0.0, 0
    def update(self, value):
        self.count += 1
        if value.isnan().any():
            return
        self.total = self.total + value
""",
        """
import torch
from torchmetrics import Mean
seen = Mean()
@torch.compile(backend="eager")
def judged(x):
    wide = (x * 2).sum()
    seen.update(wide)
    return x + 1
for _ in range(3):
    judged(torch.ones(3))
""",
        ("return `wide` from `judged`", "`seen.update(wide)` in the caller"),
    ),
    "lightning": (
        """
import torch
class LightningModule(torch.nn.Module):
    def log(self, name, value):
        import torch._dynamo
        torch._dynamo.graph_break()
class Trainer:
    def fit(self, module, batches):
        for batch in batches:
            module.training_step(batch)
""",
        """
import torch, lightning
class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 1)
    def training_step(self, batch):
        loss = self.net(batch).mean()
        self.log("loss", loss)
        return loss
lit = Lit()
lit.training_step = torch.compile(lit.training_step, backend="eager")
lightning.Trainer().fit(lit, [torch.ones(2, 3)] * 2)
""",
        ("not the whole `Lit`", "`lit.net.compile()`", "`training_step`"),
    ),
    "quiet_config": (
        """
import torch
class Config:
    def __init__(self, kind=None):
        self.kind = kind
class Head(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
    def forward(self, x):
        if self.config.kind is None:
            self.config.kind = "wide"
        return x + 1
""",
        """
import torch
from quiet_config import Config as HeadConfig, Head
head = Head(HeadConfig())
fast = torch.compile(head, backend="eager")
for _ in range(2):
    fast(torch.ones(2))
""",
        ("`HeadConfig(…, kind='wide')`",),
    ),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_said_of_a_library(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, program, expected = LIBRARIES[library]
    package = tmp_path / "site-packages" / library
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, library, raising=False)
    run, _ = play(program, tmp_path)
    monkeypatch.delitem(sys.modules, library, raising=False)
    words = " ".join(said(run))
    for part in expected:
        assert part in words, (words, [cause.title for cause in causes(run)])
