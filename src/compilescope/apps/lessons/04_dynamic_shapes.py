# %% [markdown]
# # Dynamic shapes and guards
# Which inputs make PyTorch compile again, and what does checking them cost?
#
# Compiled code is valid only for the inputs it was made for. Dynamo, the part
# of `torch.compile` that reads your Python, writes down what it relied on as
# *guards*: conditions that every later call must meet. If a guard fails, the
# function is compiled again: a *recompile*.
#
# We count compilations with a backend that does nothing but keep each graph.
# %%
import logging
import textwrap

import torch

import compilescope
from compilescope.apps.learn.kit import (
    bars,
    beside,
    compare_ms,
    missing,
    table,
)


class Keeper:
    """A backend that keeps each graph and runs it as it is."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        return gm.forward


def normalize(x):
    return (x - x.mean(0)) / x.std(0)


# %% [markdown]
# ## A guard fails
# We call `normalize` with several batch sizes. Look for the calls that compile,
# and for the guard that failed.
# %%
torch.compiler.reset()
keeper = Keeper()
rows = []
with compilescope.capture() as seen:
    compiled = torch.compile(normalize, backend=keeper)
    for size in (8, 8, 12, 16, 24):
        before = len(keeper.graphs)
        compiled(torch.randn(size, 4))
        new = len(keeper.graphs) > before
        rows.append(
            (f"({size}, 4)", "compiles" if new else "reuses a graph")
        )
table(["input", "what happens"], rows)

for function in seen.recompiles:
    for cause in function.causes:
        print(f"failed guard: {cause.guard}; this call has {cause.actual}")


# %% [markdown]
# The first graph is *specialized*: 8 is a constant in it. When a second size
# arrives, Dynamo assumes that more will follow, and replaces the number with a
# symbol. This is *automatic dynamic*. Compare the types of the inputs:
# %%
def signature(gm):
    """The graph as PyTorch prints it, without the lines about memory."""
    text = gm.print_readable(print_output=False)
    lines = (line.split(";  ")[0] for line in text.splitlines())
    return "\n".join(line for line in lines if "File:" not in line)


first, second = keeper.graphs[:2]
beside(("first", signature(first)), ("second", signature(second)))

# %% [markdown]
# These are the guards of both graphs that look at the input or its sizes.
# `TENSOR_MATCH` checks type, dtype, device and sizes; `None` means "any size".
# `SHAPE` holds the conditions on symbols.
# %%
for guard in seen.guards:
    if guard.kind in ("TENSOR_MATCH", "SHAPE"):
        for check in guard.checks:
            start = max(check.find("size="), 0)
            print(f"{guard.kind:<13} {check[start:].rstrip(')')}")

# %% [markdown]
# ## Four ways to handle sizes
# The same five batch sizes, once for each setting. The last size is 1.
#
# - `dynamic=None`, the default: static first, a symbol after the second size.
# - `dynamic=False`: always static.
# - `dynamic=True`: symbols from the start, for all dimensions.
# - `mark_dynamic(x, 0)`: a symbol from the start, for this dimension only.
# %%
SIZES = (8, 12, 16, 24, 1)


def count(function, mark=False, sizes=SIZES, **options):
    torch.compiler.reset()
    keeper = Keeper()
    compiled = torch.compile(function, backend=keeper, **options)
    steps = []
    for size in sizes:
        before = len(keeper.graphs)
        x = torch.randn(size, 4)
        if mark and size > 1:  # 1 is special, see below
            torch._dynamo.mark_dynamic(x, 0)
        compiled(x)
        steps.append("compile" if len(keeper.graphs) > before else "-")
    return steps


def center(x):
    return x - x.mean(0)


results = {
    "dynamic=None": count(center),
    "dynamic=False": count(center, dynamic=False),
    "dynamic=True": count(center, dynamic=True),
    "mark_dynamic(x, 0)": count(center, mark=True),
}
table(["setting", *map(str, SIZES)], [(k, *v) for k, v in results.items()])
counts = {name: steps.count("compile") for name, steps in results.items()}
bars("Compilations", counts, unit="")

# %% [markdown]
# A common belief is that `dynamic=True` gives one graph for every size. The
# last column shows whether it does. The sizes 0 and 1 are special (a dimension
# of size 1 broadcasts), and Dynamo gives them no symbol unless you insist.
# %%
last = results["dynamic=True"][SIZES.index(1)]
words = "compiled again" if last == "compile" else "reused the graph"
print(f"dynamic=True with size 1: {words}")


# %% [markdown]
# ## Your code can narrow a symbol
# A symbol stands for any size, until your code asks about it. An `if` on a size
# is decided while tracing, and the answer becomes a guard.
# %%
def branch(x):
    if x.shape[0] > 16:
        return x * 2
    return x + 1


torch.compiler.reset()
with compilescope.capture() as seen:
    compiled = torch.compile(branch, backend="eager", dynamic=True)
    for size in (8, 4, 20, 40):
        compiled(torch.randn(size, 4))
print(f"{len(seen.graphs)} graphs for 4 sizes")
for guard in seen.guards:
    if guard.kind == "SHAPE":
        for check in guard.checks:
            if "size()[0]" in check:
                print("guard:", check)


# %% [markdown]
# `mark_dynamic` is also a promise. If your code turns the size into a constant
# anyway, compilation fails with an error instead of a silent recompile. Use
# `maybe_mark_dynamic` where a constant is acceptable.
# %%
def only_eight(x):
    return x.reshape(8, 2, 2)


torch.compiler.reset()
logging.getLogger("torch._guards").setLevel(logging.CRITICAL)
x = torch.randn(8, 4)
torch._dynamo.mark_dynamic(x, 0)
try:
    torch.compile(only_eight, backend="eager")(x)
    print("No error: this PyTorch accepts it.")
except Exception as error:
    print(f"{type(error).__name__}:")
    lines = [line for line in str(error).splitlines() if line.strip()]
    for line in lines[:2]:
        print(textwrap.fill(line, 76, subsequent_indent="    "))


# %% [markdown]
# ## What a guard costs
# Guards are checked on *every* call, even if nothing changed. Here a function
# takes a list of tensors; each tensor adds guards. `GuardInspector` is part of
# compilescope and times the check itself.
# %%
def total(tensors):
    return sum(tensor.sum() for tensor in tensors)


costs = {}
for length in (1, 10, 100):
    tensors = [torch.randn(4) for _ in range(length)]
    report = compilescope.GuardInspector(total).inspect((tensors,))
    if report.check_ns is None:
        missing("the time of a check", "this PyTorch can't measure it")
        break
    name = f"{length} in the list, {report.guards} guards"
    costs[name] = report.check_ns / 1000
bars("One check of all guards", costs, unit="us")


# %% [markdown]
# ## What a symbol costs
# Does code for any size run slower than code for one size? We ask Inductor, the
# default backend, with a size that both versions handle. One thread, and several
# rounds, each with the static version a second time: a difference counts only
# if all rounds agree on it, and if it is larger than any between those two.
# %%
def static(x):
    return normalize(x)


def dynamic(x):
    return normalize(x)


torch.compiler.reset()
torch.set_num_threads(1)
x = torch.randn(512, 512)
versions = {
    "static": torch.compile(static, dynamic=False),
    "dynamic": torch.compile(dynamic, dynamic=True),
}
try:
    calls = {n: lambda f=f: f(x) for n, f in versions.items()}
    timings = compare_ms(calls)
except Exception as error:
    missing("Inductor", str(error).splitlines()[0])
else:
    bars("One call, 512 x 512", timings.ms)
    low, high = timings.share("dynamic")
    print(f"dynamic takes {low:.2f} to {high:.2f} times as long as static:")
    print(f"{timings.differs('dynamic')} static here")

# %% [markdown]
# ## On your own program
# - `compilescope run train.py` lists recompiles with the guards that failed.
# - `compilescope show --section guards` lists guards by line of your code.
# - `compilescope explain` says why, and what to change.
# - `compilescope check train.py --max-recompiles 0` keeps it that way.
# %% [markdown]
# ## Exercise
# `score` drops the last row if there is an odd number of rows. As it stands, it
# is compiled several times. Change the code so that **one** compilation serves
# every number of rows from 2 to 64, with the same results.
#
# `make(backend)` must return a compiled function. The check passes its own
# backend and counts the graphs. The graph must take the rows of `x` and compute
# the score from them.
# %% tags=["exercise"]
import torch


def score(x):
    if x.shape[0] % 2 == 1:
        x = x[:-1]
    return x.softmax(0).sum(1)


def make(backend):
    return torch.compile(score, backend=backend)


# %% tags=["check"]
def check(answer):
    """One graph must serve all sizes, and compute every result from the rows of x."""
    import torch

    graphs, outputs, swaps = [], [], []

    def swapped(value):
        """With other rows in place of those of x, where it begins with them."""
        for old, new in swaps:
            if (
                isinstance(value, torch.Tensor)
                and value.dim() == 2
                and value.shape[1] == old.shape[1]
                and torch.equal(value[: len(old)], old)
            ):
                return torch.cat([new, value[len(old) :]])
        return value

    def keep(gm, example_inputs):
        graphs.append(gm)

        def run(*inputs):
            results = gm(*map(swapped, inputs))
            tensors = [r for r in results if isinstance(r, torch.Tensor)]
            outputs.extend((t, t._version) for t in tensors)
            return results

        return run

    torch.compiler.reset()
    torch.manual_seed(0)
    compiled = answer.make(keep)
    for rows in (7, 2, 3, 8, 33, 64, 12):
        x = torch.randn(rows, 4)
        outputs.clear()
        result = compiled(x.clone())
        expected = x[: rows // 2 * 2].softmax(0).sum(1)
        if getattr(result, "shape", None) != expected.shape:
            return f"With {rows} rows the result has the wrong shape."
        if not torch.allclose(result, expected, atol=1e-6):
            return f"With {rows} rows the numbers are wrong."
        storages = [t.untyped_storage().data_ptr() for t, _ in outputs]
        if result.untyped_storage().data_ptr() not in storages:
            return (
                f"With {rows} rows the result did not come out of a graph."
            )
        if any(t._version != version for t, version in outputs):
            return f"With {rows} rows the graph's result was overwritten."
        if len(graphs) > 1:
            return f"With {rows} rows it was compiled again: {len(graphs)} graphs."
        # Let the graph see other rows, and only the graph: the result must follow.
        even = x[: rows // 2 * 2]
        other = torch.randn_like(even)
        swaps.append((even, other))
        follows = compiled(x.clone())
        swaps.clear()
        if not torch.allclose(follows, other.softmax(0).sum(1), atol=1e-6):
            return (
                f"With {rows} rows the graph did not compute the score "
                "from the rows of `x`: some of the work is done elsewhere."
            )
    ops = [node for node in graphs[0].graph.nodes if "call" in node.op]
    if not any("softmax" in str(node.target) for node in ops):
        return (
            "There is no softmax in the graph: it was computed elsewhere."
        )
    return None


# %% tags=["solution"]
import torch


def score(x):
    # No question about the size, so no guard on it.
    even = x.shape[0] // 2 * 2
    return x[:even].softmax(0).sum(1)


def make(backend):
    # Symbols from the start: no first graph for one size only.
    return torch.compile(score, backend=backend, dynamic=True)
