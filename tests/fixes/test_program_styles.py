"""Programs in many a style: what a fix makes of them loses nothing there, and prints the same."""

from __future__ import annotations

import contextlib
import io
import runpy
import warnings
from pathlib import Path

import pytest

import compilescope
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.subject import Program
from compilescope.knowledge.analysis.digest import digest
from fixes.repertoire import in_order, meant

pytestmark = pytest.mark.torch

CLOSURE = """
import gc
import torch
def make(scale):
    def step(x):
        y = x * scale
        z = y.sin()
        gc.collect()
        return z
    return torch.compile(step, backend="eager")
print(make(3)(torch.ones(2)).tolist())
"""
NO_GRAD_METHOD = '''
import io
import torch
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(2, 2); self.sink = io.BytesIO()
    @torch.no_grad()
    def forward(self, x, *args, keep: bool = True, **kw):
        """Doc."""
        h = self.l(x)
        out = h.softmax(-1)
        torch.save(out, self.sink)
        return out, h
m = torch.compile(M(), backend="eager")
out, h = m(torch.ones(2), keep=False)
print(out.requires_grad, round(out.sum().item(), 4), m.sink.tell() > 0)
'''
WHOLE_STEP = """
import torch as th
th.manual_seed(0)
net = th.nn.Linear(3, 1)
opt = th.optim.Adam(net.parameters(), 1e-2)
def train(x, y):
    opt.zero_grad(set_to_none=True)
    pred = net(x)
    loss = th.nn.functional.mse_loss(pred, y)
    loss.backward()
    th.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    return loss.detach()
train = th.compile(train, backend="eager")
for i in range(3): print(round(train(th.ones(4, 3), th.zeros(4, 1)).item(), 5))
"""
FREEZE = """
import torch
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 2); self.b = torch.nn.Linear(2, 2)
    def forward(self, x):
        for p in self.a.parameters(): p.requires_grad_(False)
        return self.b(self.a(x)).sum()
m = M()
torch.compile(m, backend="aot_eager")(torch.ones(2)).backward()
print(m.a.weight.grad is None, m.b.weight.grad is not None)
"""
ANOMALY = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
    def forward(self, x):
        with torch.autograd.detect_anomaly(check_nan=False):
            out = self.fc(x)
            return out.relu()
print(tuple(torch.compile(Net(), backend="eager")(torch.ones(3)).shape))
"""
REDIRECT = """
import contextlib, io
import torch
def f(x):
    with contextlib.redirect_stdout(io.StringIO()):
        y = x.sin()
        z = y * 2
    return z
print(torch.compile(f, backend="eager")(torch.ones(2)).tolist())
"""
CATCH = """
import warnings
import torch
@torch.compile(backend="eager")
def f(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x.sin()
    return y
print(f(torch.ones(2)).tolist())
"""
DATACLASS = """
import torch
from dataclasses import dataclass
def f(x):
    @dataclass
    class Out:
        a: torch.Tensor
        b: torch.Tensor
    o = Out(x + 1, x * 2)
    return o.a * o.b
print(torch.compile(f, backend="eager")(torch.ones(2)).tolist())
"""
MODULE_ITERATORS = """
import torch
class M(torch.nn.Module):
    def forward(self, x, parts):
        return x + sum(p * 2 for p in parts)
m = M()
cm = torch.compile(m, backend="eager")
print(cm(torch.ones(2), map(float, "123")).tolist())
print(cm(torch.ones(2), parts=(i for i in (1.0, 2.0, 3.0))).tolist())
"""
CONFIG_OF_SELF = """
import json
import torch
class M(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
    def forward(self, x):
        y = x.sin()
        return y * len(json.dumps(self.cfg, sort_keys=True))
cfg = {"a": 1}
m = torch.compile(M(cfg), backend="eager")
print(m(torch.ones(2)).tolist())
cfg["b"] = [1, 2]
print(m(torch.ones(2)).tolist())
"""
DISABLED_NAME = """
import torch
def plain(x):
    return x * 3
helper = torch.compiler.disable(plain, reason="old")
def f(x):
    return helper(x + 1) * 2
print(torch.compile(f, backend="eager")(torch.ones(2)).tolist())
"""
CASES = [
    ("outside-of-compiled", CLOSURE),
    ("outside-of-compiled", NO_GRAD_METHOD),
    ("outside-of-compiled", WHOLE_STEP),
    ("outside-of-compiled", FREEZE),
    ("with-outside", ANOMALY),
    ("with-outside", REDIRECT),
    ("with-outside", CATCH),
    ("class-at-top", DATACLASS),
    ("list-for-iterator", MODULE_ITERATORS),
    ("value-from-outside", CONFIG_OF_SELF),
    ("explicit-break-removed", DISABLED_NAME),
]
QUICK = (0, 1, 7)


def _run(path: Path) -> tuple[Program, str]:
    import torch

    torch._dynamo.reset()
    printed = io.StringIO()
    with (
        compilescope.capture() as seen,
        contextlib.redirect_stdout(printed),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        runpy.run_path(str(path), run_name="__main__")
    torch._dynamo.reset()
    return Program(seen.run, digest(seen.run), str(path)), printed.getvalue()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(*case, id=f"{case[0]}-{n}", marks=() if n in QUICK else pytest.mark.slow)
        for n, case in enumerate(CASES)
    ],
)
def test_what_it_makes_loses_nothing_and_prints_the_same(
    name: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    program, printed = _run(path)
    fix = next(each for each in all_fixes() if each.id == name)
    subject = meant(fix, in_order(program))
    assert subject is not None
    path.write_text(fix.propose(subject).files[str(path)])
    fixed, again = _run(path)
    # torch asks for a break of its own inside `Optimizer.step`.
    left = {site.fingerprint for site in fixed.digest.sites if site.rule != "explicit-break"}
    assert not left
    assert again == printed
