"""Programs with a fix written by hand: good ones, and traps that must not come out verified."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One program in two texts."""

    name: str
    before: str
    after: str
    verdict: str
    reason: str = ""
    """A part of the words."""
    allows: tuple[str, ...] = ()
    at: str = ""
    """A part of the line whose finding must be gone; empty: the first finding."""


def _program(body: str, *, call: str = "f(torch.ones(4))", backend: str = "eager") -> str:
    return (
        f"import torch\n\n\n{body.strip()}\n\n\n"
        f'f = torch.compile(f, backend="{backend}")\ntorch.manual_seed(1)\nprint({call})\n'
    )


def _case(name: str, before: str, after: str, verdict: str, reason: str = "", **more) -> Case:
    how = {key: more.pop(key) for key in ("call", "backend") if key in more}
    return Case(name, _program(before, **how), _program(after, **how), verdict, reason, **more)


GOOD = [
    _case(
        "where",
        """
def f(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y + 1
""",
        """
def f(x):
    y = torch.where(x.sum() > 0, x * 2, x - 1)
    return y + 1
""",
        "verified",
    ),
    _case(
        "cond",
        """
def f(x):
    if x.sum() > 0:
        y = x.sin()
    else:
        y = x.cos()
    return y + 1
""",
        """
def f(x):
    y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    return y + 1
""",
        "verified",
    ),
    _case(
        "print-guarded",
        """
def f(x):
    y = x * 2
    print("sum", y.sum().item())
    return y + 1
""",
        """
def f(x):
    y = x * 2
    if not torch.compiler.is_compiling():
        print("sum", y.sum().item())
    return y + 1
""",
        "verified",
        allows=("drops-output",),
    ),
    _case(
        "flag",
        """
def f(x):
    n = x.sum().item()
    return x * n
""",
        """
torch._dynamo.config.capture_scalar_outputs = True


def f(x):
    n = x.sum().item()
    return x * n
""",
        "verified",
    ),
    _case(
        "in-place",
        """
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.w = torch.nn.Linear(4, 4)

    def forward(self, x):
        if x.mean() > 0:
            self.total.add_(x)
        return self.w(x) + self.total


f = M()
""",
        """
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.w = torch.nn.Linear(4, 4)

    def forward(self, x):
        self.total.copy_(torch.where(x.mean() > 0, self.total + x, self.total))
        return self.w(x) + self.total


f = M()
""",
        "verified",
        backend="aot_eager",
    ),
    _case(
        "assert",
        """
def f(x):
    if x.isnan().any():
        raise ValueError("there is a NaN")
    return x * 2
""",
        """
def f(x):
    torch._assert_async(~x.isnan().any(), "there is a NaN")
    return x * 2
""",
        "verified",
        allows=("exception-type",),
    ),
]

TRAPS = [
    _case(
        "impure-branch",
        """
log = []


def f(x):
    if x.sum() > 0:
        log.append("positive")
        x = x * 2
    return x + 1
""",
        """
log = []


def f(x):
    log.append("positive")
    x = torch.where(x.sum() > 0, x * 2, x)
    return x + 1
""",
        "rejected",
        "log",
    ),
    _case(
        "output-is-input",
        """
def f(x):
    if x.sum() > 0:
        return x
    return x - 1
""",
        """
def f(x):
    return torch.where(x.sum() > 0, x, x - 1)
""",
        "rejected",
        "memory",
    ),
    _case(
        "other-shape",
        """
def f(x):
    if x.sum() > 0:
        y = x.sum(0, keepdim=True)
    else:
        y = x
    return y + 1
""",
        """
def f(x):
    y = torch.where(x.sum() > 0, x.sum(0, keepdim=True), x)
    return y + 1
""",
        "rejected",
        "output",
    ),
    _case(
        "exception-type",
        """
def f(x):
    if x.min() < 0:
        raise ValueError("negative")
    return x * 2


def g(x):
    try:
        return f(x)
    except ValueError:
        return None
""",
        """
def f(x):
    torch._assert_async(x.min() >= 0, "negative")
    return x * 2


def g(x):
    try:
        return f(x)
    except ValueError:
        return None
""",
        "rejected",
        "raises",
    ),
    _case(
        "print-order",
        """
def f(x):
    print("first")
    y = x * 2
    return y + 1


def g(x):
    print("before")
    return f(x)
""",
        """
def f(x):
    y = x * 2
    return y + 1


def g(x):
    print("first")
    print("before")
    return f(x)
""",
        "rejected",
        "output",
        call="g(torch.ones(3))",
    ),
    _case(
        "global",
        """
count = 0


def f(x):
    global count
    if x.sum() > 0:
        count += 1
        x = x + count
    return x * 2
""",
        """
count = 0


def f(x):
    x = torch.where(x.sum() > 0, x + count + 1, x)
    return x * 2
""",
        "rejected",
        "count",
    ),
    _case(
        "class-attribute",
        """
class Config:
    count = 0


def f(x):
    if x.sum() > 0:
        Config.count += 1
        x = x * 3
    return x * 2
""",
        """
class Config:
    count = 0


def f(x):
    x = torch.where(x.sum() > 0, x * 3, x)
    return x * 2
""",
        "rejected",
        "Config.count",
    ),
    _case(
        "astray-later",
        """
def f(x):
    print("f")
    return x * 2


def g(x):
    for step in range(5):
        x = f(x)
    return None
""",
        """
def f(x):
    return x * 2


def g(x):
    for step in range(5):
        x = f(x if step < 3 else x * 3)
    return None
""",
        "rejected",
        "calls",
        allows=("drops-output",),
        call="g(torch.ones(3))",
    ),
    _case(
        "nan-in-untaken-branch",
        """
def f(x):
    if x.min() > 0:
        y = x.log()
    else:
        y = x * 0
    return y
""",
        """
def f(x):
    y = torch.where(x > 0, x.log(), x * 0)
    return y
""",
        "rejected",
        "values",
    ),
    _case(
        "nan-gradient-through-where",
        """
def f(x):
    if x.min() > 0:
        y = x.sqrt()
    else:
        y = x * 0.5
    return y.sum()
""",
        """
def f(x):
    y = torch.where(x.min() > 0, x.sqrt(), x * 0.5)
    return y.sum()
""",
        "rejected",
        "grad",
        call="f(torch.ones(4, requires_grad=True))",
        backend="aot_eager",
    ),
    _case(
        "overflow",
        """
def f(x):
    n = int(x.sum())
    return x.float() * (n * n > 0)
""",
        """
def f(x):
    n = x.sum()
    return x.float() * (n * n > 0)
""",
        "rejected",
        call="f(torch.tensor([3, 4]))",
    ),
    _case(
        "dtype",
        """
def f(x):
    n = x.sum().item()
    return x.half() * n
""",
        """
def f(x):
    n = x.sum()
    return x.half() * n.reshape(1)
""",
        "rejected",
        "dtype",
    ),
    _case(
        "rebinding",
        """
def f(x):
    if x.sum() > 0:
        x.mul_(2)
    return x.sum()


def g(x):
    return f(x), x
""",
        """
def f(x):
    x = torch.where(x.sum() > 0, x * 2, x)
    return x.sum()


def g(x):
    return f(x), x
""",
        "rejected",
        "args[0]",
    ),
    _case(
        "dropped-print",
        """
def f(x):
    print("hello")
    return x * 2
""",
        """
def f(x):
    if not torch.compiler.is_compiling():
        print("hello")
    return x * 2
""",
        "rejected",
        "output",
    ),
    _case(
        "adds-a-recompile",
        """
def f(x, n=1):
    print("n")
    return x * 2


def g():
    return [f(torch.ones(3), n).sum() for n in range(4)]
""",
        """
def f(x, n=1):
    return x * 2 + 0 * len(str(n))


def g():
    return [f(torch.ones(3), n).sum() for n in range(4)]
""",
        "rejected",
        "recompile",
        allows=("drops-output",),
        call="g()",
    ),
    _case(
        "makes-eager",
        """
def h(x):
    y = x + 1
    print("h")
    return y * 3


def f(x):
    return h(x * 2) - 1
""",
        """
@torch.compiler.disable
def h(x):
    y = x + 1
    print("h")
    return y * 3


def f(x):
    return h(x * 2) - 1
""",
        "rejected",
        at="print",
    ),
    _case(
        "moves-the-break",
        """
def f(x):
    y = x * 2
    if y.sum() > 0:
        y = y + 1
    return y
""",
        """
def f(x):
    y = x * 2
    positive = bool(y.sum() > 0)
    if positive:
        y = y + 1
    return y
""",
        "rejected",
        "new graph break",
        at="if",
    ),
    _case(
        "number-for-tensor",
        """
def f(x):
    n = x.sum().item()
    return n, x * 2
""",
        """
def f(x):
    n = x.sum()
    return n, x * 2
""",
        "rejected",
        "output",
    ),
    _case(
        "untaken-branch",
        """
def f(x):
    if x.sum() != x.sum() + 1:
        y = x * 2
    else:
        y = x * 3
    return y
""",
        """
def f(x):
    y = x * 2
    return y
""",
        "unverified",
        "never",
        call="f(torch.ones(4, dtype=torch.bool))",
    ),
    _case(
        "lost-random-numbers",
        """
def f(x):
    print("noise")
    noise = torch.rand(4)
    if x.sum() > 1e30:
        return x + noise
    return x
""",
        """
def f(x):
    if x.sum() > 1e30:
        return x + torch.rand(4)
    return x
""",
        "rejected",
        "random",
        allows=("drops-output",),
        at="print",
    ),
    _case(
        "loses-the-gradient",
        """
def f(x):
    n = x.sum()
    if n > 0:
        x = x * n
    return x
""",
        """
def f(x):
    n = x.sum().detach()
    return torch.where(n > 0, x * n, x)
""",
        "rejected",
        "grad",
        call="f(torch.ones(4, requires_grad=True))",
    ),
    _case(
        "list-for-tuple",
        """
def f(x):
    print("x")
    return (x * 2, x * 3)
""",
        """
def f(x):
    return [x * 2, x * 3]
""",
        "rejected",
        allows=("drops-output",),
    ),
]

CASES = [*GOOD, *TRAPS]
