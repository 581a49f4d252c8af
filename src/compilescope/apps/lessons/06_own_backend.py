# %% [markdown]
# # Writing and registering a backend
# What does a backend get, what must it return, and how do you bring your own?
#
# `torch.compile` has two halves. Dynamo reads your Python and captures graphs. A
# *backend* turns each graph into something that runs. The backend can be any
# function, and writing one is the quickest way to see what compilers work with.
# %%
import logging
from statistics import median
from time import perf_counter

import torch

import compilescope
from compilescope.apps.learn.kit import (
    bars,
    code,
    compare_ms,
    draw_graph,
    missing,
    show,
    table,
)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Parameter(torch.randn(64, 256))
        self.down = torch.nn.Parameter(torch.randn(256, 64))

    def forward(self, x):
        h = torch.relu(x @ self.up)
        return torch.softmax(h @ self.down + x, dim=-1)


torch.manual_seed(0)
model, x = Model(), torch.randn(32, 64)

# %% [markdown]
# ## The smallest backend
# A backend gets a `torch.fx.GraphModule`, which is the graph as data, and example
# inputs. It returns a function that takes such inputs and returns a tuple of
# results. This one returns the graph itself, which runs in eager mode.
# %%
received = []


def keep(gm, example_inputs):
    received.append((gm, example_inputs))
    return gm.forward


torch.compiler.reset()
compiled = torch.compile(model, backend=keep)
for _ in range(3):
    y = compiled(x)
gm, inputs = received[0]
print(f"3 calls of the model, {len(received)} call of the backend")
print("inputs:", [tuple(each.shape) for each in inputs])
print("same result as the model:", torch.equal(y, model(x)))
draw_graph(gm)

# %% [markdown]
# A backend is called once for each graph, not once for each model: a graph break
# or a recompile makes another graph, and another call of the backend.
#
# ## A backend that measures
# `torch.fx.Interpreter` runs a graph node by node, and you decide what happens at
# each node. Here we time each operation.
# %%
spent = {}


class Stopwatch(torch.fx.Interpreter):
    def run_node(self, node):
        begin = perf_counter()
        result = super().run_node(node)
        if node.op.startswith("call"):
            spent.setdefault(node.name, []).append(perf_counter() - begin)
        return result


def stopwatch(gm, example_inputs):
    return Stopwatch(gm).run


torch.compiler.reset()
compiled = torch.compile(model, backend=stopwatch)
for _ in range(200):
    compiled(x)
middle = {name: median(each) * 1e6 for name, each in spent.items()}
bars("Median time of each operation", middle, unit="us")

# %% [markdown]
# ## A backend that rewrites
# Compilers replace patterns. This backend replaces a product followed by a sum
# with one call of `torch.addmm`, and leaves the rest to eager mode.
# %%
counts = []


def product_then_sum(a, b, c):
    return a @ b + c


def one_call(a, b, c):
    return torch.addmm(c, a, b)


def ops(gm):
    return [node for node in gm.graph.nodes if node.op.startswith("call")]


def rewrite(gm, example_inputs):
    before = len(ops(gm))
    found = torch.fx.replace_pattern(gm, product_then_sum, one_call)
    counts.append((before, len(ops(gm)), len(found)))
    return gm.forward


torch.compiler.reset()
y = torch.compile(model, backend=rewrite)(x)
before, after, found = counts[0]
print(f"pattern found {found}x: {before} operations before, {after} after")
worst = (y - model(x)).abs().max()
print(f"largest difference from the model: {worst:.1e}")

# %% [markdown]
# ## A name for it
# `register_backend` lets users write a string. A package can do without the
# import: PyTorch looks for backends in the entry points of installed packages.
# %%
from torch._dynamo import list_backends, register_backend

if "lesson_rewrite" not in list_backends(None):
    register_backend(rewrite, name="lesson_rewrite")
torch.compiler.reset()
torch.compile(model, backend="lesson_rewrite")(x)
names = list_backends()
print("registered here:", [n for n in names if "lesson" in n])
print("from entry points:", [n for n in names if "compilescope" in n])
code(
    """[project.entry-points.torch_dynamo_backends]
my_chip = "my_package.backend:compile_graph"
""",
    title="in your package's pyproject.toml",
)

# %% [markdown]
# ## One level lower: AOTAutograd
# A Dynamo graph has whatever functions your code called, it may write in place,
# and it has no backward pass. AOTAutograd turns it into graphs of *ATen*
# operators (PyTorch's C++ operators) without in-place writes, and traces the
# backward pass ahead of time. Most backends start here.
# %%
stages = {}


def stage(name):
    def compiler(gm, example_inputs):
        stages[name] = gm
        return make_boxed_func(gm.forward)

    return compiler


try:
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
except ImportError as error:
    missing("AOTAutograd's helpers", str(error))
else:
    aot = aot_autograd(
        fw_compiler=stage("ATen, forward"),
        bw_compiler=stage("ATen, backward"),
    )
    torch.compiler.reset()
    torch.compile(model, backend=aot)(x).sum().backward()
    stages = {"Dynamo": received[0][0], **stages}
    rows = []
    for name, gm in stages.items():
        targets = [node.target for node in ops(gm)]
        names = [getattr(t, "__name__", str(t)) for t in targets]
        rows.append((name, len(names), ", ".join(names)))
    table(["graph", "ops", "operators"], rows)

# %% [markdown]
# ## A device with four operators
# A common belief is that a backend must support every operator before it can run
# a model. It need not. compilescope's `AcceleratorAdapter` asks what your device
# supports, passes you only those parts of each graph, and runs the rest on the
# host. We call such a part an *island*. PyTorch calls it a partition.
#
# Our chip is played by NumPy. It has no softmax.
# %%
try:
    import numpy as np
except ImportError:
    np = None
    missing("the chip", "it is played by NumPy, which is not installed")

if np is not None:
    KERNELS = {
        "aten.mm.default": np.matmul,
        "aten.relu.default": lambda a: np.maximum(a, 0),
        "aten.add.Tensor": np.add,
        "aten.t.default": np.transpose,
    }

    class OnChip(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return KERNELS[str(target)](*args, **kwargs)

    class Chip(compilescope.AcceleratorAdapter):
        capabilities = compilescope.AcceleratorCapabilities(
            "chip", ["float32"], supported_ops=KERNELS
        )

        def compile(self, gm, inputs):
            def run(*tensors):
                results = OnChip(gm).run(
                    *(each.numpy() for each in tensors)
                )
                return [torch.from_numpy(result) for result in results]

            return run


# %% [markdown]
# The adapter keeps a report of what went where. (`compilescope.islands_text`
# prints all of it; we pick a few facts.)


# %%
def where(report):
    for graph in report.graphs:
        for island in graph.islands:
            for op, count in island.by_op.items():
                yield f"island {island.number}", op, count, ""
        for left in graph.host:
            share = f"{left.ops_share_with:.0%} on the chip if it had this"
            yield "host", left.op, left.nodes, share


if np is not None:
    chip = Chip()
    torch.compiler.reset()
    with torch.no_grad():
        y = torch.compile(model, backend=chip)(x)
        close = torch.allclose(y, model(x), atol=1e-5)
    print("agrees with the model:", close)
    print(f"operations on the chip: {chip.report.ops_share:.0%}")
    table(["where", "operator", "times", ""], where(chip.report))

# %% [markdown]
# ## Does it compute what it should?
# `verify` runs the model twice with different numbers and checks each island
# against eager mode. It also notices a backend that only pretends:
# %%
if np is not None:

    class Pretender(Chip):
        def compile(self, gm, inputs):
            return gm.forward  # eager mode on the host, not the chip

    logging.getLogger("compilescope").setLevel(logging.ERROR)
    rows = []
    for adapter in (Chip(), Pretender()):
        torch.compiler.reset()
        with torch.no_grad():
            verdict = adapter.verify(model, x)
        failed = [
            check.name
            for check in verdict.checks
            if check.verdict != "pass"
        ]
        rows.append(
            (type(adapter).__name__, verdict.verdict, ", ".join(failed))
        )
    table(["backend", "verdict", "failed checks"], rows)

# %% [markdown]
# ## Is it faster?
# A backend of one's own is not faster by itself. These run the same model:
# %%
torch.set_num_threads(1)
torch.compiler.reset()
versions = {"eager, not compiled": model}
versions["keep"] = torch.compile(Model(), backend=keep)
versions["stopwatch"] = torch.compile(Model(), backend=stopwatch)
if np is not None:
    versions["chip (NumPy)"] = torch.compile(Model(), backend=Chip())
calls = {name: lambda f=f: f(x) for name, f in versions.items()}
with torch.no_grad():
    timings = compare_ms(calls)
bars("One call", timings.ms)
for name in list(calls)[1:]:
    show(f"{name} is {timings.differs(name)} plain eager mode here.")

# %% [markdown]
# ## On your own program
# - `compilescope run train.py` shows the graphs that any backend would get.
# - `compilescope preflight --device npu-a train.py` checks them against a device
#   that you don't have.
# - `compilescope diff model.py:build --test-backend my_chip --localize` compares
#   its numbers with eager mode, and finds the operation where they diverge.
# - `docs/guides/adapter.md` has every setting of the adapter.
# %% [markdown]
# ## Exercise
# Teach the chip softmax, so that **all** operations of the model run on it.
# ATen's softmax is `aten._softmax.default`; it is called with the tensor, the
# dimension, and a flag that you can ignore. Use NumPy, not torch: the check
# notices operations that run on the host.
# %% tags=["exercise"]
import numpy as np
import torch

import compilescope

KERNELS = {
    "aten.mm.default": np.matmul,
    "aten.relu.default": lambda a: np.maximum(a, 0),
    "aten.add.Tensor": np.add,
    "aten.t.default": np.transpose,
}


class OnChip(torch.fx.Interpreter):
    def call_function(self, target, args, kwargs):
        return KERNELS[str(target)](*args, **kwargs)


class Chip(compilescope.AcceleratorAdapter):
    capabilities = compilescope.AcceleratorCapabilities(
        "chip", ["float32"], supported_ops=KERNELS
    )

    def compile(self, gm, inputs):
        def run(*tensors):
            results = OnChip(gm).run(*(each.numpy() for each in tensors))
            return [torch.from_numpy(result) for result in results]

        return run


# %% tags=["check"]
def check(answer):
    """All ops on the chip, the right numbers, nothing computed on the host."""
    import logging

    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Parameter(torch.randn(8, 32))
            self.down = torch.nn.Parameter(torch.randn(32, 8))

        def forward(self, x):
            h = torch.relu(x @ self.up)
            return torch.softmax(h @ self.down + x, dim=-1)

    logging.getLogger("compilescope").setLevel(logging.ERROR)
    torch.compiler.reset()
    torch.manual_seed(0)
    model, chip = Model(), answer.Chip()
    x = 50 * torch.randn(4, 8)
    with torch.no_grad():
        result = torch.compile(model, backend=chip)(x)
        expected = model(x)
    if chip.emulated:
        return "`emulated` means that the host computes; the chip must."
    share = chip.report.ops_share
    if share is None or share < 1:
        left = {op.op for graph in chip.report.graphs for op in graph.host}
        named = f" On the host: {', '.join(sorted(left))}." if left else ""
        return f"{share or 0:.0%} of the operations run on the chip.{named}"
    if not torch.allclose(result, expected, atol=1e-5, equal_nan=False):
        if result.isnan().any():
            return "There are NaNs in the result: x has large numbers."
        worst = (result - expected).abs().max()
        return f"The numbers are wrong: off by up to {worst:.2g}."
    with torch.no_grad():
        verification = chip.verify(model, x)
    for found in verification.checks:
        if found.verdict != "pass":
            return f"`verify`: {found.name} is {found.verdict}, {found.reason}."
    return None


# %% tags=["solution"]
import numpy as np
import torch

import compilescope


def softmax(a, dim, half_to_float):
    # Minus the largest value: exp of a large number would be infinite.
    powers = np.exp(a - a.max(axis=dim, keepdims=True))
    return powers / powers.sum(axis=dim, keepdims=True)


KERNELS = {
    "aten.mm.default": np.matmul,
    "aten.relu.default": lambda a: np.maximum(a, 0),
    "aten.add.Tensor": np.add,
    "aten.t.default": np.transpose,
    "aten._softmax.default": softmax,
}


class OnChip(torch.fx.Interpreter):
    def call_function(self, target, args, kwargs):
        return KERNELS[str(target)](*args, **kwargs)


class Chip(compilescope.AcceleratorAdapter):
    capabilities = compilescope.AcceleratorCapabilities(
        "chip", ["float32"], supported_ops=KERNELS
    )

    def compile(self, gm, inputs):
        def run(*tensors):
            results = OnChip(gm).run(*(each.numpy() for each in tensors))
            return [torch.from_numpy(result) for result in results]

        return run
