"""Patches that hand a region its inputs in another form, by hand: those that do harm are told.

A verifier that takes an int64 for an int32, a list for an iterator, or a value that is there before
the call for one that the call makes must still see what a region makes of it.
"""

from __future__ import annotations

from repair.trials.cases import Case

_HEAD = 'import torch\n\n\n@torch.compile(backend="eager")\n'


def _called(name: str, body: str, calls: tuple[str, str], verdict: str, reason: str = "") -> Case:
    """One function, called in two ways."""
    before, after = (f"{_HEAD}{body.strip()}\n\n\n{call}\n" for call in calls)
    return Case(name, before, after, verdict, reason)


_DTYPES = (
    "for kind in (torch.int64, torch.int32):\n    f(torch.arange(3, dtype=kind))",
    "for kind in (torch.int64, torch.int32):\n    f(torch.arange(3, dtype=kind).long())",
)
_TWICE = (
    "x, y = torch.ones(3), torch.ones(3)\nf(x, x)\nf(x, y)",
    "x, y = torch.ones(3), torch.ones(3)\nf(x, {})\nf(x, y)",
)
_NUMBERS = (
    "for rate in (0.5, 0.25):\n    f(torch.ones(3), rate)",
    "for rate in (0.5, 0.25):\n    f(torch.ones(3), torch.tensor(rate, dtype=torch.float64))",
)
_ITEMS = ("f(torch.ones(3), (n * n for n in range(4)))", "f(torch.ones(3), [0, 1, 4, 9])")
_MADE = """{head}class Table(torch.nn.Module):
    rows = None

    def forward(self, x):
        if self.rows is None:
            print("made")
            self.rows = 3
        return x{use}


table = Table()
{ahead}torch.compile(table, backend="eager")(torch.ones(3))
"""


def _made(name: str, ahead: str, verdict: str, reason: str = "", use: str = " + self.rows") -> Case:
    """A value that the first call makes, or that is there before it."""
    head = "import torch\n\n\n"
    texts = [_MADE.format(head=head, ahead=line, use=use) for line in ("", f"{ahead}\n")]
    return Case(name, texts[0], texts[1], verdict, reason, allows=("drops-output",))


_STEP = """import torch

model = torch.nn.Linear(3, 3)


@torch.compile(backend="eager")
def step(x):
    model.zero_grad()
    loss = (model(x) ** 2).mean()
    print("back")
{end}
    return loss


step(torch.ones(2, 3))
"""


def _step(name: str, end: str, verdict: str, reason: str = "") -> Case:
    """A region that goes backward itself."""
    before = _STEP.format(end="    loss.backward()")
    after = _STEP.format(end=end).replace('    print("back")\n', "")
    return Case(name, before, after, verdict, reason, allows=("drops-output",), at="print")


_CHECK = 'def f(x):\n    assert x.ndim == 1 and x.max() < 4, f"not {x.max()}"\n    return x + 1'
_SMALL = "    torch._assert_async(x.max() < 4, 'up to 4')\n    return x + 1"


def _check(name: str, body: str, verdict: str, reason: str = "") -> Case:
    """An `assert` of which one part can never be false here."""
    before, after = (f"{_HEAD}{text}\n\n\nf(torch.ones(3))\n" for text in (_CHECK, body))
    return Case(name, before, after, verdict, reason, allows=("exception-type",))


_UNTIL = """def f(x):
{loop}
    return x + 1
"""


def _until(name: str, loop: str, verdict: str, reason: str = "") -> Case:
    """A loop that does not end on infinities, which nobody has to answer for."""
    old = "    while x.abs().max() > 1:\n        x = x / 2"
    texts = [f"{_HEAD}{_UNTIL.format(loop=each)}\n\nf(torch.ones(3) * 4)\n" for each in (old, loop)]
    return Case(name, texts[0], texts[1], verdict, reason)


_LOOP = """    (x,) = torch.while_loop(
        lambda x: x.abs().max() > {limit}, lambda x: (x / 2,), (x,)
    )"""
CASES = [
    _until("until-it-fits", _LOOP.format(limit=1), "verified"),
    _until("until-it-is-larger", _LOOP.format(limit=2), "rejected"),
    _called("index-widened", "def f(i):\n    return torch.ones(5)[i]", _DTYPES, "verified"),
    _called("index-returned", "def f(i):\n    return i + 1", _DTYPES, "rejected", "values"),
    _called(
        "one-tensor-as-view",
        "def f(x, y):\n    return x * y",
        (_TWICE[0], _TWICE[1].format("x.view_as(x)")),
        "verified",
    ),
    _called(
        "one-tensor-as-copy",
        "def f(x, y):\n    x.add_(1)\n    return x * y",
        (_TWICE[0], _TWICE[1].format("x.clone()")),
        "rejected",
    ),
    _called("number-returned", "def f(x, rate):\n    return x * rate, rate", _NUMBERS, "rejected"),
    _called("items-once", "def f(x, ns):\n    return x + sum(ns)", _ITEMS, "verified"),
    _called(
        "items-twice", "def f(x, ns):\n    return x + sum(ns) + 2 * sum(ns)", _ITEMS, "rejected"
    ),
    _called(
        "items-of-a-call",
        "def f(x, ns):\n    return x + sum(ns)",
        ("f(torch.ones(3), (abs(n) for n in range(4)))", "f(torch.ones(3), [0, 1, 2, 3])"),
        "unverified",
        "is a generator",
    ),
    _made("made-ahead", "table.rows = 3", "verified"),
    _made("made-otherwise", "table.rows = 5", "rejected", "rows", use=""),
    _step("backward-kept", "    loss.backward()", "verified"),
    _step("backward-left-out", "    pass", "rejected", "grad of"),
    _check(
        "assert-parted",
        f'def f(x):\n    assert x.ndim == 1, f"not {{x.max()}}"\n{_SMALL}',
        "verified",
    ),
    _check("assert-part-lost", f"def f(x):\n{_SMALL}", "unverified", "never"),
    _check(
        "assert-other-words",
        f'def f(x):\n    assert x.ndim == 1, "a vector"\n{_SMALL}',
        "unverified",
        "never",
    ),
]
