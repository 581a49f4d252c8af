# %% [markdown]
# # Numerics
# Why does compiled code give other numbers, and when is that a bug?
#
# A computer rounds after every operation. Compiled code does the same math with
# other operations in another order, so it rounds elsewhere. Its result may
# differ from eager mode, and both from the exact one. The question is therefore
# not *whether* they differ, but whether rounding explains it.
# %%
import torch
import torch.nn.functional as F

import compilescope
from compilescope.apps.learn.kit import bars, missing, show, table

torch.manual_seed(0)


def error(result, exact):
    """The mean distance from the exact result."""
    return (result.double() - exact).abs().mean().item()


def largest(a, b):
    return (a.double() - b.double()).abs().max().item()


# %% [markdown]
# ## One sum, several orders
# Addition of floats isn't associative. Here the same float32 numbers are added
# in different orders. The anchor is the sum in float64, which has more than
# twice as many digits.
# %%
numbers = torch.randn(1000, 100)
exact = numbers.double().sum()
row_by_row = torch.zeros(100)
for row in numbers:
    row_by_row = row_by_row + row

sums = {
    "torch.sum": numbers.sum(),
    "row by row": row_by_row.sum(),
    "rows first": numbers.sum(1).sum(),
    "sorted": numbers.flatten().sort().values.sum(),
    "last of cumsum": numbers.flatten().cumsum(0)[-1],
}
bars(
    "Error of a float32 sum",
    {k: largest(v, exact) for k, v in sums.items()},
    "",
)
different = len({value.item() for value in sums.values()})
show(f"{len(sums)} orders gave {different} different sums.")
# %% [markdown]
# ## Compiled and eager
# An exponential and a softmax. Inductor uses its own vectorized `exp` and its own
# order of sums. An *ulp* (unit in the last place) is the step from one float to
# the next.
# %%


def score(x):
    return torch.softmax(x, -1) * x.exp()


x = torch.randn(256, 256)
eager, exact = score(x), score(x.double())
has_inductor = True
try:
    compiled = torch.compile(score)(x)
except Exception as problem:
    has_inductor = False
    compiled = eager
    missing(
        "Inductor",
        f"{type(problem).__name__}: {str(problem).split(chr(10))[0]}",
    )

found = compilescope.compare_tensors(eager, compiled, exact=exact)
table(
    ["compiled and eager", "value"],
    [
        ["elements", found.metrics["elements"]],
        ["elements that differ", found.metrics["differing"]],
        ["largest difference, in ulps", found.metrics["max_ulp"]],
    ],
)
# %% [markdown]
# ## float64 as the anchor
# Which of the two is right? Neither is exact. Run the same function in float64
# and compare *both* with it.
# %%
bars(
    "Mean error, compared with float64",
    {"eager": error(eager, exact), "compiled": error(compiled, exact)},
    unit="",
)
show(
    f"Verdict: {found.verdict}. {found.reason[0].upper()}{found.reason[1:]}."
)
# %% [markdown]
# ## "Compiled code is less accurate"
# Take a chain of operations in bfloat16, which has few digits. Eager mode rounds
# to bfloat16 after each operation. Inductor keeps float32 within a kernel and
# rounds once at the end. With `emulate_precision_casts`, it rounds like eager
# mode.
# %%


def chain(x):
    for _ in range(8):
        x = torch.sin(x) * 1.1 + 0.1
    return x


half = torch.randn(256, 256).bfloat16()
half_eager, half_exact = chain(half), chain(half.double())
half_compiled = torch.compile(chain)(half) if has_inductor else half_eager
errors = {"eager": error(half_eager, half_exact)}
if has_inductor:
    errors["compiled"] = error(half_compiled, half_exact)
    torch.compiler.reset()
    try:
        options = {"emulate_precision_casts": True}
        rounded = torch.compile(chain, options=options)(half)
        errors["compiled like eager"] = error(rounded, half_exact)
    except RuntimeError as problem:
        missing("`emulate_precision_casts`", str(problem).split("\n")[0])
    share = errors["compiled"] / errors["eager"]
    word = (
        "smaller"
        if share < 0.9
        else "larger"
        if share > 1.1
        else "as large"
    )
    show(
        f"The compiled error is {word} here ({share:.2f} of the eager one)."
    )
bars("Mean error in bfloat16, compared with float64", errors, unit="")
# %% [markdown]
# ## A tolerance is no verdict
# Two results to judge: the compiled bfloat16 chain, and a GELU in float32 whose
# author replaced the function by its `tanh` approximation. `allclose` with a
# tolerance looks at the difference only. The last column asks whether rounding
# explains it.
# %%
y = torch.randn(256, 256)
gelu, wrong, gelu_exact = (
    F.gelu(y),
    F.gelu(y, approximate="tanh"),
    F.gelu(y.double()),
)
cases = {
    "bfloat16 chain, compiled": (half_eager, half_compiled, half_exact),
    "another GELU": (gelu, wrong, gelu_exact),
}
table(
    ["result", "largest difference", "allclose to 1e-3", "by float64"],
    [
        [
            name,
            f"{largest(a, b):.1e}",
            str(torch.allclose(a, b, rtol=1e-3, atol=1e-3)),
            compilescope.compare_tensors(a, b, exact=anchor).verdict,
        ]
        for name, (a, b, anchor) in cases.items()
    ],
)
# %% [markdown]
# ## A whole model: KernelDiff
# `KernelDiffHarness` does this for every output of a model (and for gradients,
# with `train=True`): it runs eager mode, the backend and float64. First Inductor,
# then a backend with that wrong GELU planted in it.
# %%


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 256)
        self.down = torch.nn.Linear(256, 64)
        self.norm = torch.nn.LayerNorm(64)

    def forward(self, x):
        hidden = F.gelu(self.up(x))
        return self.norm(x + self.down(hidden))


def careless(gm, example_inputs):
    """A backend that takes the approximation for the function."""
    for node in gm.graph.nodes:
        if node.target is F.gelu:
            node.kwargs = {"approximate": "tanh"}
    gm.recompile()
    return gm.forward


model, batch = Block(), torch.randn(32, 64)
if has_inductor:
    harness = compilescope.KernelDiffHarness(model, (batch,))
    print(harness.compare().summary())
# %% [markdown]
# With `localize=True` it also searches for the operation: it runs parts of the
# graph under the backend, the rest in eager mode, until the wrong one is left.
# %%
harness = compilescope.KernelDiffHarness(
    model, (batch,), test_backend=careless
)
report = harness.compare(localize=True)
show(f"Verdict: {report.verdict}. {report.reason}.")
table(
    ["wrong operation", "node", "line", "stage"],
    [
        [each.target, each.node, each.line, each.stage]
        for each in report.guilty
    ],
)
# %% [markdown]
# ## On your own program
# - `compilescope diff model.py:build --localize` compares a model under a backend
#   with eager mode and float64, and finds the operation that differs.
# - `compilescope diff model.py:build --train` includes gradients and one step.
# - `compilescope minify --predicate diff model.py` writes the smallest graph
#   that still differs.
# %% [markdown]
# ## Exercise
# Write `is_rounding(eager, compiled, exact)`: True if rounding explains why
# `compiled` differs from `eager`. `exact` is the result in float64; the other two
# may have any floating-point dtype. The starter uses a tolerance.
# %% tags=["exercise"]
import torch


def is_rounding(eager, compiled, exact):
    return torch.allclose(eager, compiled, rtol=1e-3, atol=1e-3)


# %% tags=["check"]
def check(answer):
    """Right and wrong results of several sizes: no single tolerance fits them all."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(3)
    x = torch.randn(128, 128)

    def chain(x):
        for _ in range(8):
            x = torch.sin(x) * 1.1 + 0.1
        return x

    half = x.bfloat16()
    fewer = chain(half.float()).bfloat16()
    damaged = chain(x).clone()
    damaged[5, 7] += 0.001
    large = x * 1e6
    by_halves = large[:, :64].sum(1) + large[:, 64:].sum(1)
    small = x * 1e-6
    cases = [
        ("the same result", True, chain(x), chain(x), chain(x.double())),
        (
            "bfloat16, rounded once",
            True,
            chain(half),
            fewer,
            chain(half.double()),
        ),
        (
            "sums of large numbers",
            True,
            large.sum(1),
            by_halves,
            large.double().sum(1),
        ),
        (
            "an approximated GELU",
            False,
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
            F.gelu(x.double()),
        ),
        ("one wrong element", False, chain(x), damaged, chain(x.double())),
        (
            "small numbers, doubled",
            False,
            small.sin(),
            2 * small.sin(),
            small.double().sin(),
        ),
        (
            "a NaN",
            False,
            chain(x),
            torch.full_like(x, torch.nan),
            chain(x.double()),
        ),
    ]
    for name, right, eager, compiled, exact in cases:
        said = answer.is_rounding(eager, compiled, exact)
        if bool(said) is not right:
            far = (compiled.double() - exact).abs().max().item()
            own = (eager.double() - exact).abs().max().item()
            return (
                f"{name[0].upper()}{name[1:]}: you said {bool(said)}. The largest error is {far:.1e}, "
                f"that of eager mode {own:.1e}."
            )


# %% tags=["solution"]
import torch


def is_rounding(eager, compiled, exact):
    own = (eager.double() - exact).abs()
    error = (compiled.double() - exact).abs()
    # Eager mode may be exact by luck: a few steps of the dtype are fine.
    luck = 4 * torch.finfo(eager.dtype).eps * exact.abs().mean()
    worst = error.max() <= 4 * own.max() + luck
    mean = error.mean() <= 2 * own.mean() + luck
    return bool(worst and mean)
