"""Every pass over source: never grows, keeps what is asked for, is done after one run."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compilescope.change.minify.engine import Outcome, Pass, reduce
from compilescope.change.minify.source.candidate import SourceCandidate, is_valid, parse
from compilescope.change.minify.source.minifier import all_passes

SAMPLE = '''
"""A program with some of everything."""
from __future__ import annotations
import os, math as m
from dataclasses import dataclass, field  # a comment

@dataclass
class Settings:
    """Sizes."""
    width: int = 12
    names: list = field(default_factory=list)

class Base:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @staticmethod
    def twice(x, *rest, by=2, **more):
        return x * by

class Model(Base):
    def __init__(self, settings):
        super().__init__(settings)
        self.layers = [i * 2 for i in range(settings.width) if i % 2]

    def forward(self, x, scale=1.5, *, extra=None):
        for layer in self.layers:
            if layer > 2 and not extra:
                x += helper(layer, scale=self.twice(2))
            elif layer == 2:
                x = x - 1
            else:
                continue
        try:
            x = m.sqrt(x)
        except ValueError as error:
            x = 0
        finally:
            last = {"x": x, **{}}
        with open(os.devnull) as stream, open(os.devnull):
            text = stream.read()
        return (x, last, f"{text!r} {x + 1}") if x else (lambda: needle(x))()

def helper(value, scale=1):
    global COUNT
    assert value < 1000, "too large"
    while value > 100:
        value //= 2
    first, *others = [value, scale, -value]
    if (n := len(others)) > 1: del others[0]; return needle(value * scale[0:n] if scale else 128)
    return value

def needle(x=3):
    print("needle", x)
    yield x

async def unused():
    async with open("x") as f:
        return await f

if __name__ == "__main__":
    model = Model(Settings(width=5))
    print(model.forward(16, extra="nothing at all"), end="")
'''

PASSES = {each.id: each for each in all_passes()}


def keeping(*parts: str) -> Callable[[SourceCandidate], Outcome]:
    """Keeps valid programs that have all of these in their text."""

    def judge(candidate: SourceCandidate) -> Outcome:
        text = candidate.text()
        if not is_valid(text):
            return "invalid"
        return "kept" if all(part in text for part in parts) else "lost"

    return judge


def printing(word: str) -> Callable[[SourceCandidate], Outcome]:
    """Keeps programs that print the word and end well."""

    def judge(candidate: SourceCandidate) -> Outcome:
        text, out = candidate.text(), io.StringIO()
        if not is_valid(text):
            return "invalid"
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(text, "<test>", "exec"), {"__name__": "__main__"})
        except Exception:
            return "crashed"
        return "kept" if word in out.getvalue() else "lost"

    return judge


SMALL = SAMPLE[SAMPLE.index("class Model") : SAMPLE.index("def needle")]


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (SMALL, ("helper(layer", "return")),
        pytest.param(SAMPLE, ("class Model", "helper(layer"), marks=pytest.mark.slow),
        pytest.param(SAMPLE, ("needle(",), marks=pytest.mark.slow),
    ],
    ids=["small", "sample", "needle"],
)
def test_a_pass_shrinks_keeps_and_comes_to_an_end(
    name: str, text: str, parts: tuple[str, ...]
) -> None:
    start = parse(text)
    judge = keeping(*parts)
    done = reduce(start, [PASSES[name]], judge)
    assert done.best.size() <= start.size()
    assert judge(done.best) == "kept"
    start_again = parse(done.best.text())
    assert reduce(start_again, [PASSES[name]], judge).best is start_again


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSES)
def test_every_proposal_has_a_tree_that_is_its_text(name: str) -> None:
    """Whatever it proposes; so that the next pass sees the program that was judged."""
    seen = 0

    def judge(candidate: SourceCandidate) -> Outcome:
        nonlocal seen
        seen += 1
        return "kept" if seen == 1 or (is_valid(candidate.text()) and seen % 3 == 0) else "lost"

    done = reduce(parse(SAMPLE), [PASSES[name]], judge)
    assert is_valid(done.best.text())


EXAMPLES = [
    ("trimmings", "def f(x: int) -> int:\n    '''Doc.'''\n    return x  # why\n", "return x", 8),
    ("statements", "a = 1\nb = 2\ndef f():\n    c = 3\n    return needle\n", "return needle", 7),
    ("blocks", "if a:\n    needle\nelse:\n    b\n", "needle", 1),
    ("blocks", "for i in range(9):\n    needle(i)\n", "needle(i)", 4),
    ("blocks", "try:\n    a\nexcept E:\n    needle\nfinally:\n    c\n", "needle", 1),
    ("decorators", "@a\n@b(1)\ndef f():\n    pass\n", "def f", 6),
    ("assignments", "a = b = needle\n", "needle", 1),
    ("calls", "def f(a, b=2):\n    return needle(a, b)\nf(1)\n", "needle(", 6),
    ("calls", "def main():\n    x = 1\n    needle(x)\nmain()\n", "needle(x)", 7),
    ("variables", "a = 3 + 4\nneedle(a)\n", "needle(", 8),
    ("heads", "x = f(g(needle), 2) + 1\ny = a.b(c)\n", "needle", 6),
    ("imports", "from a import b, needle, c\n", "needle", 4),
    ("modules", "class A:\n    def needle(self): pass\nclass B(A):\n    pass\n", "class B", 10),
    ("modules", "class M(nn.Module):\n    def forward(self, x):\n        return x\nM()", "M", 9),
    ("modules", "x = nn.Linear(4, 4, bias=False, device=d)\n", "x =", 9),
    ("arguments", "needle(1, *a, k=2, **b)\n", "needle(", 3),
    ("arguments", "needle = [1, 2, (3, 4)]\n", "needle", 4),
    ("parameters", "def f(a, b, *, c=1):\n    return b\nf(1, needle, c=2)\n", "needle", 11),
    ("expressions", "needle(a.b(c)[0] + 1 if d else (e, f))\n", "needle", 4),
    ("literals", "needle(128, 128, 0.125, 'a long text')\n", "needle", 10),
]


@pytest.mark.parametrize(("name", "before", "part", "tokens"), EXAMPLES)
def test_what_a_pass_does(name: str, before: str, part: str, tokens: int) -> None:
    best = reduce(parse(before), [PASSES[name]], keeping(part)).best
    assert best.size()[0] == tokens, best.text()


def test_every_pass_has_an_example() -> None:
    assert {name for name, *_ in EXAMPLES} == set(PASSES)


@pytest.mark.slow
def test_all_passes_together_leave_little() -> None:
    done = reduce(parse(SAMPLE), all_passes(), keeping("needle("))
    assert done.best.size()[0] <= 12
    assert done.calls < 200


RUNNING = """
import os, math
class Base:
    def __init__(self, depth):
        self.depth = depth
    def call(self, x):
        return self.inner(x) + 1
class Model(Base):
    def __init__(self, depth):
        super().__init__(depth)
        self.layers = [i * 2 for i in range(depth)]
    def inner(self, x):
        for layer in self.layers:
            if layer > 2:
                x = x + helper(layer, scale=2)
        return math.sqrt(abs(x))
def helper(value, scale=1):
    if value == 4:
        print("needle", value * scale)
    return value
def main():
    model = Model(3)
    print(f"total {sum(model.call(i) for i in range(3))}")
if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_a_program_that_must_run_shrinks_to_its_heart() -> None:
    done = reduce(parse(RUNNING), all_passes(), printing("needle 8"))
    assert len(done.best.text().strip().splitlines()) <= 8
    whole = reduce(parse(RUNNING), all_passes(), printing("needle"))
    assert len(whole.best.text().strip().splitlines()) <= 5


PIECES = [
    "import os\n",
    "x = [1, 2, 3]\n",
    "def alpha(a, b=2):\n    return a + b\n",
    "class Beta(Gamma):\n    size = 3\n    def gamma(self):\n        return self.size\n",
    "for delta in range(10):\n    alpha(delta, b=3)\n",
    "if x:\n    epsilon = {1: 2}\nelif y:\n    zeta = (1, 2)\nelse:\n    pass\n",
    "with open('eta') as f:\n    theta = f.read()\n",
    "try:\n    iota()\nexcept (A, B) as e:\n    raise\n",
    "kappa = lambda a, *b, **c: (yield)\n",
    "@deco\nasync def lamda(): await mu\n",
    "nu = f'{x!r:>{y}}' 'more'\n",
    "print(*xi, **omicron)\n",
    "match x:\n    case {'pi': rho}:\n        pass\n",
    "sigma: int = -1 if not x else ~2 ** 3 @ y\n",
    "del tau[0], tau[1:2, ...]\n",
]
WORDS = ["alpha", "gamma", "delta", "epsilon", "zeta", "theta", "iota", "lamda", "nu", "rho"]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), st.data())
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_needed_stays(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    there = [word for word in WORDS if word in text]
    needed = data.draw(st.lists(st.sampled_from(there), max_size=2)) if there else []
    judge = keeping(*needed)
    start = parse(text)
    done = reduce(start, all_passes(), judge)
    assert judge(done.best) == "kept" and done.best.size() <= start.size()
    assert done.best.size()[0] <= 12 * max(1, len(set(needed)))


def test_odd_programs_are_left_whole() -> None:
    """Tabs, form feeds, no newline at the end, names beyond ASCII, nothing at all."""
    for text in ("", "\n\n# only a comment", "if 1:\n\tx = 'é'\n\tnaïve = x", "\x0cx = 1;y = 2"):
        done = reduce(parse(text), all_passes(), keeping())
        assert done.best.text().strip() in ("", "pass")


def test_passes_are_passes() -> None:
    assert all(isinstance(each, Pass) for each in PASSES.values())
    assert len({each.order for each in PASSES.values()}) == len(PASSES)
