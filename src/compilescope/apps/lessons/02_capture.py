# %% [markdown]
# # Graph capture
# How does Python code become a graph?
#
# `torch.compile` never reads your source text. It looks at the *bytecode*, the
# instructions that the Python interpreter executes, runs them with stand-ins
# for tensors, and writes down every tensor operation it meets. The result is
# an FX graph: nodes for operations, edges for the values between them. The
# part of PyTorch that does this is called Dynamo.
# %%
import dis
import re

import torch

from compilescope.apps.learn.kit import (
    beside,
    code,
    draw_graph,
    missing,
    show,
    table,
)


def wave(x, y):
    return torch.sin(x) + torch.cos(y)


dis.dis(wave)
# %% [markdown]
# ## Capture a graph
# A *backend* is any function that takes a graph and returns something to call
# instead. This one keeps the graph and runs it unchanged, so you see exactly
# what Dynamo captured.
# %%
graphs = []


def keep(gm, example_inputs):
    graphs.append(gm)
    return gm.forward


compiled = torch.compile(wave, backend=keep)
x, y = torch.randn(8), torch.randn(8)
print("same result as eager:", torch.equal(compiled(x, y), wave(x, y)))
# %% [markdown]
# In a notebook the nodes are boxes. In a terminal each line is a node, and
# the rails at the left carry values down: a rail begins where a value is made
# and ends where it is last used. Find `add`: it takes two values.
# %%
draw_graph(graphs[0], "sin(x) + cos(y)")
# %% [markdown]
# The same graph as a table, and as the Python code that FX makes of it. There
# are six kinds of nodes: `placeholder` (an input), `get_attr` (something that
# the graph holds), `call_function`, `call_method`, `call_module` and `output`.
# %%
table(
    ["node", "kind", "target", "arguments"],
    [
        [n.name, n.op, getattr(n.target, "__name__", n.target), n.args]
        for n in graphs[0].graph.nodes
    ],
)
code(graphs[0].code, title="graphs[0].code")
# %% [markdown]
# ## What runs afterwards
# Dynamo also writes *new bytecode* for your function. It calls the compiled
# graph where the tensor operations were. Python runs it whenever the *guards*
# hold, which are the conditions under which this graph is right (dtype, shape
# and so on).
# %%
torch.compiler.reset()
codes = []
try:
    from torch._dynamo.convert_frame import register_bytecode_hook

    hook = register_bytecode_hook(lambda old, new: codes.append((old, new)))
    torch.compile(wave, backend=keep)(x, y)
    hook.remove()
except ImportError:
    missing(
        "Dynamo's bytecode", "this torch has no `register_bytecode_hook`"
    )


def lookups(code_object):
    """The names that it looks up, without Dynamo's own bookkeeping."""
    steps = dis.get_instructions(code_object)
    found = [str(s.argval) for s in steps if s.opname in LOADS]
    found = [n for n in found if not n.startswith(("__import", "record_"))]
    return "\n".join(
        re.sub(r"(__compiled_fn_\d+)\w*", r"\1", n) for n in found
    )


LOADS = ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD")
for old, new in codes:
    beside(
        ("your bytecode looks up", lookups(old)),
        ("the new one looks up", lookups(new)),
    )
# %% [markdown]
# ## A module
# A module is captured through its `forward`. Parameters become inputs of the
# graph, and the layers are gone: what is left are the functions that they call.
# %%
torch.compiler.reset()
graphs.clear()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


torch.compile(Block(), backend=keep)(torch.randn(4, 16))
draw_graph(graphs[0], "x + down(relu(up(x)))")
# %% [markdown]
# ## Python disappears
# A loop over a Python number, an `if` on a Python value, a list, a helper
# function: Dynamo executes all of that while it captures. Only tensor
# operations stay. Here the loop is unrolled, and the `if` leaves no trace.
# %%
torch.compiler.reset()
graphs.clear()


def power(x, n, flip):
    result = torch.ones_like(x)
    for _ in range(n):
        result = result * x
    return -result if flip else result


torch.compile(power, backend=keep)(torch.randn(8), 3, False)
draw_graph(graphs[0], "power(x, 3, False)")
# %% [markdown]
# ## Where capture ends
# An `if` on a *tensor* is different: which way it goes is only known when the
# graph has run. Dynamo then ends the graph, lets Python decide, and captures a
# new graph behind it. That is a *graph break*.
# %%
torch.compiler.reset()
graphs.clear()


def gate(x):
    y = torch.sin(x)
    if y.sum() > 0:
        return y * 2
    return y - 1


torch.compile(gate, backend=keep)(torch.ones(8))
show(f"`gate` was captured in {len(graphs)} graphs.")
for number, gm in enumerate(graphs, 1):
    draw_graph(gm, f"graph {number}")
# %% [markdown]
# With `fullgraph=True` a graph break is an error, which tells you where it is.
# %%
torch.compiler.reset()
try:
    torch.compile(gate, backend=keep, fullgraph=True)(torch.ones(8))
except Exception as error:
    lines = str(error).splitlines()
    print(f"{type(error).__name__}: {lines[0]}")
    at = lines.index("from user code:") if "from user code:" in lines else 0
    print("\n".join(line.split("/")[-1] for line in lines[at + 1 : at + 3]))
# %% [markdown]
# ## On your own program
# - `compilescope run train.py` lists every graph break with its source line.
# - `compilescope explain` says why each one happens and what to change.
# - `compilescope report` writes a page with every graph, from your source to
#   the kernel.
# - In Python: `compilescope.explain(model)(x).graphs`.
# %% [markdown]
# ## Exercise
# `step` below is captured in more than one graph. Rewrite it so that Dynamo
# captures it in a single graph, with the same results for every `x`.
# %% tags=["exercise"]
import torch


def step(x):
    y = torch.tanh(x)
    if y.mean() > 0:
        return y * 2
    return y * y


# %% tags=["check"]
def check(answer):
    import torch

    def expected(x):
        y = torch.tanh(x)
        return y * 2 if y.mean() > 0 else y * y

    sizes = []

    def count(gm, example_inputs):
        sizes.append(
            sum(node.op.startswith("call_") for node in gm.graph.nodes)
        )
        return gm.forward

    torch.compiler.reset()
    compiled = torch.compile(answer.step, backend=count)
    torch.manual_seed(1)
    noise = torch.randn(16)
    for shift in (3.0, -3.0, 0.5, -0.5):
        x = noise + shift
        got = compiled(x)
        if not isinstance(got, torch.Tensor) or got.shape != x.shape:
            return f"`step` returned {type(got).__name__}, not a tensor of the shape of `x`."
        if not torch.allclose(got, expected(x)):
            sign = "positive" if torch.tanh(x).mean() > 0 else "negative"
            return f"The result is wrong where the mean is {sign}."
    if not sizes:
        return "Dynamo captured no graph: `step` runs in eager mode only."
    if len(sizes) > 1:
        return f"Dynamo still captures {len(sizes)} graphs."
    if sizes[0] < 3:
        return f"The graph has {sizes[0]} operations: the work happens outside of it."


# %% tags=["solution"]
import torch


def step(x):
    y = torch.tanh(x)
    return torch.where(y.mean() > 0, y * 2, y * y)
