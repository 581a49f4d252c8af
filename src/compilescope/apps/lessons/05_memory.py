# %% [markdown]
# # Memory
# How much memory does a compiled function need, and what does fusion save?
#
# In eager mode every operation writes its result to memory, even if the next
# operation is the only one to read it. Such a result is an *intermediate*. A
# compiler that sees the whole graph can compute several operations in one loop
# (*fusion*), and then an intermediate need not be stored at all.
#
# We measure the *peak*: the most bytes held in tensors at any moment of a call,
# beyond what was there before it. The result of the call counts. PyTorch's own
# allocator reports every allocation and release, so nothing is estimated; the
# memory use that the operating system shows would be far noisier.
# %%
import textwrap

import torch

from compilescope.apps.learn.kit import (
    bars,
    code,
    compare_ms,
    fresh_cache,
    missing,
    peak_bytes,
    show,
    table,
)

torch.manual_seed(0)
torch.set_num_threads(1)  # steadier times; memory does not depend on it
x = torch.randn(2048, 2048)
SIZE = x.nbytes
print(f"x has {SIZE / 2**20:.0f} MiB")


def tensors(amount):
    """Bytes, in multiples of x."""
    return f"{amount / SIZE:.1f}"


# %% [markdown]
# ## A chain of pointwise operations
# GELU written out. Every operation works on tensors of the size of `x`.
# %%
def gelu(x):
    inner = 0.79788 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + torch.tanh(inner))


torch.compiler.reset()
compiled = torch.compile(gelu)
try:
    compiled(x)
    INDUCTOR = True
except Exception as error:
    INDUCTOR = False
    missing("Inductor", f"it failed: {str(error).splitlines()[0]}")
    print("The compiled figures below are those of backend='eager'.")
    torch.compiler.reset()
    compiled = torch.compile(gelu, backend="eager")

BACKEND = "inductor" if INDUCTOR else "eager"
peaks = {"eager": peak_bytes(gelu, x), "compiled": peak_bytes(compiled, x)}
bars("Peak memory of gelu(x)", peaks, unit="bytes")
for name, peak in peaks.items():
    print(f"{name}: {tensors(peak)} times the size of x, with the result")


# %% [markdown]
# ## Where eager mode needs it
# To watch eager mode, we capture the graph and run it one operation at a time
# with `torch.fx.Interpreter`, which drops each value after its last use, as
# Python does. After each operation we add up what is alive besides `x`.
# %%
class Watcher(torch.fx.Interpreter):
    def run(self, *args):
        self.alive = {}
        return super().run(*args)

    def run_node(self, node):
        result = super().run_node(node)
        if node.op.startswith("call"):
            held = {
                id(v): v.nbytes for v in self.env.values() if v is not x
            }
            self.alive[node.name] = sum(held.values()) + result.nbytes
        return result


graphs = []


def keep(gm, example_inputs):
    graphs.append(gm)
    return gm.forward


torch.compiler.reset()
torch.compile(gelu, backend=keep)(x)
watcher = Watcher(graphs[0])
watcher.run(x)
bars("Alive after each operation", watcher.alive, unit="bytes")
in_python, by_op = peaks["eager"], max(watcher.alive.values())
if in_python > by_op:
    show(
        f"The Python function needs {tensors(in_python)} tensors at its peak, "
        f"the graph {tensors(by_op)}: in Python, the name `inner` keeps its "
        "tensor alive until the function returns."
    )

# %% [markdown]
# ## Where the compiled code saves it
# This is the beginning of the loop that Inductor wrote. Each `tmp` is a local
# variable, not a tensor. Only the result at the end of the loop is stored.
# %%
loops = None
if INDUCTOR:
    from torch._inductor.utils import run_and_get_code

    with fresh_cache():
        _, sources = run_and_get_code(torch.compile(gelu), x)
    lines = sources[0].splitlines()
    starts = [
        at for at, line in enumerate(lines) if line.strip()[:4] == "for("
    ]
    loops = len(starts)
    if starts:
        body = textwrap.dedent("\n".join(lines[starts[0] : starts[0] + 14]))
        code(body, title=f"loop 1 of {loops}")

# %% [markdown]
# Both versions do the same arithmetic, but one fused loop reads and writes
# less. The traffic below is counted from the graph: in eager mode each
# operation reads its tensors and writes its result; one fused loop reads `x`
# once and writes the result once. Is it also faster?
# %%
calls = [n for n in graphs[0].graph.nodes if n.op.startswith("call")]
traffic = sum(len(node.all_input_nodes) + 1 for node in calls) * SIZE
torch.compiler.reset()
compiled = torch.compile(gelu, backend=BACKEND)
both = {"eager": lambda: gelu(x), "compiled": lambda: compiled(x)}
timings = compare_ms(both, runs=5)
times = timings.ms
rows = [("eager", len(calls), f"{traffic / 2**20:.0f} MiB", times["eager"])]
if loops:
    fused = f"{2 * SIZE / 2**20:.0f} MiB" if loops == 1 else "not counted"
    rows.append(("compiled", loops, fused, times["compiled"]))
table(["", "loops", "read and written", "ms (one thread)"], rows)
verdict = timings.differs("compiled")
show(f"On this machine, compiled is {verdict} eager.")
if verdict == "faster than":
    least = 1 / timings.share("compiled")[1]
    show(f"In every round, eager took at least {least:.1f} times as long.")


# %% [markdown]
# ## By hand: in-place operations
# In eager mode you can save memory with in-place operations. Compare what they
# need with what the compiler needs for the plain code.
# %%
def gelu_in_place(x):
    y = x * x
    y.mul_(x).mul_(0.044715).add_(x).mul_(0.79788).tanh_().add_(1)
    return y.mul_(x).mul_(0.5)


print("same numbers:", torch.allclose(gelu(x), gelu_in_place(x), atol=1e-5))
peaks = {
    "eager": peak_bytes(gelu, x),
    "eager, in place": peak_bytes(gelu_in_place, x),
    "compiled, plain code": peak_bytes(compiled, x),
}
bars("Peak memory", peaks, unit="bytes")


# %% [markdown]
# ## Where there is nothing to save
# A common belief is that `torch.compile` always saves memory. Matrix products
# are not fused with each other: each needs its full input.
# %%
def products(x):
    return x @ x @ x


def broken(x):
    inner = 0.79788 * (x + 0.044715 * x * x * x)
    torch._dynamo.graph_break()
    return 0.5 * x * (1 + torch.tanh(inner))


def compare(function, *args):
    compiled = torch.compile(function, backend=BACKEND)
    compiled(*args)
    return peak_bytes(function, *args), peak_bytes(compiled, *args)


small = torch.randn(512, 512)
torch.compiler.reset()
rows = []
for name, function, arg in (
    ("gelu", gelu, x),
    ("x @ x @ x", products, small),
    ("gelu with a graph break", broken, x),
):
    eager, peak = compare(function, arg)
    saved = 1 - peak / eager
    words = f"{saved:.0%} less" if saved > 0.01 else "saves nothing"
    inputs = [f"{amount / arg.nbytes:.1f}" for amount in (eager, peak)]
    rows.append((name, *inputs, words))
title = "Peak memory, in multiples of the input"
table(["function", "eager", "compiled", ""], rows, title=title)


# %% [markdown]
# At a graph break the graph ends, so whatever the rest needs must be written to
# memory. Fusion stops there.
#
# ## Training
# Training needs more: autograd keeps intermediates until the backward pass. A
# compiler that sees the whole graph can keep fewer and compute cheap values
# again. (Lesson 9 shows which.) We measure a full step, forward and backward.
# %%
def step(function):
    weight = torch.ones(2048, requires_grad=True)

    def run(x):
        function(x * weight).square().sum().backward()

    run(x)
    return peak_bytes(run, x)


torch.compiler.reset()
compiled = torch.compile(gelu, backend=BACKEND)
peaks = {"eager": step(gelu), "compiled": step(compiled)}
bars("Peak memory of a training step", peaks, unit="bytes")

# %% [markdown]
# On a GPU the same happens with device memory, which is scarcer:
# %%
if torch.cuda.is_available():
    on_gpu = x.cuda()
    torch.compiler.reset()
    eager, peak = compare(gelu, on_gpu)
    peaks = {"eager": eager, "compiled": peak}
    bars("Peak on the GPU", peaks, unit="bytes")
else:
    missing("a GPU", "`torch.cuda.is_available()` is False")

# %% [markdown]
# ## On your own program
# - `compilescope run train.py` finds the graph breaks that stop fusion.
# - `compilescope fix train.py` proposes changes that remove them.
# - `compilescope run --ir train.py`, then `compilescope report`: what was fused,
#   kernel by kernel.
# %% [markdown]
# ## Exercise
# `smooth` checks its own values halfway. Change it so that the compiled version
# needs at most **1.5** times the size of `x` at its peak (the result included).
# The result must stay the same, `x` must not change, and all the work must be
# in one graph. The check of the values may move to whoever calls `smooth`.
# %% tags=["exercise"]
import torch


def smooth(x):
    y = torch.sigmoid(x) * x
    z = torch.exp(-y.abs())
    if z.max() > 1:
        raise ValueError("z is too large")
    return (y + z) / (1 + z)


# %% tags=["check"]
def check(answer):
    """Compile it, compare the numbers, measure the peak, and look at the graph."""
    import torch

    from compilescope.apps.learn.kit import peak_bytes

    def expected(x):
        y = torch.sigmoid(x) * x
        z = torch.exp(-y.abs())
        return (y + z) / (1 + z)

    torch.compiler.reset()
    torch.manual_seed(0)
    compiled = torch.compile(answer.smooth)
    first, second = torch.randn(512, 512), torch.randn(512, 512)
    before = first.clone()
    result = compiled(first)
    kept = result.clone()
    if not torch.equal(first, before):
        return "It changes `x`."
    if not torch.allclose(result, expected(first), atol=1e-5):
        return "The numbers differ from those of the original."
    peak = peak_bytes(compiled, second) / second.nbytes
    if not torch.allclose(compiled(second), expected(second), atol=1e-5):
        return "The numbers differ on a second input."
    if not torch.equal(result, kept):
        return "A second call overwrote the result of the first."
    if peak < 0.99:
        return f"It allocates {peak:.1f} tensors: the result is not a new tensor."
    if peak > 1.5:
        return f"The peak is {peak:.1f} times the size of `x`; 1.5 is the limit."
    graphs = []

    def keep(gm, example_inputs):
        graphs.append(gm)
        return gm.forward

    # Little memory is no merit of the compiler if the work is done elsewhere.
    torch.compiler.reset()
    try:
        torch.compile(answer.smooth, backend=keep, fullgraph=True)(first)
    except torch._dynamo.exc.TorchDynamoException:
        return "It needs little memory, but not all of it is compiled: with `fullgraph=True` it fails."
    if len(graphs) != 1:
        return f"It needs little memory, but Dynamo captures {len(graphs)} graphs."
    ops = sum("call" in node.op for node in graphs[0].graph.nodes)
    if ops < 4:
        return f"Operations in the graph: {ops}; most of the work is done elsewhere."
    return None


# %% tags=["solution"]
import torch


def smooth(x):
    # No question about values in here, so one graph and one fused loop.
    y = torch.sigmoid(x) * x
    z = torch.exp(-y.abs())
    return (y + z) / (1 + z)
