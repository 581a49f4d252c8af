# %% [markdown]
# # Backends side by side
# What does each backend do with the same graph?
#
# Dynamo captures a graph and hands it to a *backend*, which returns something
# to call. `torch.compile(f, backend=...)` chooses it. The default is Inductor;
# the others are mostly there to find out *which stage* is to blame when
# something is slow or wrong.
# %%
import torch

from compilescope.apps.learn.kit import (
    bars,
    code,
    compare_ms,
    draw_graph,
    first_call_seconds,
    fresh_cache,
    missing,
    show,
    table,
)

torch.set_num_threads(1)  # Other programs disturb one thread the least.
show("Registered: " + ", ".join(torch.compiler.list_backends()))
try:
    hidden = set(torch._dynamo.list_backends(None))
    hidden -= set(torch.compiler.list_backends())
    show(
        f"And {len(hidden)} for debugging, `eager` and `aot_eager` among them."
    )
except (AttributeError, TypeError):
    missing("the list of all backends", "this torch doesn't have it")


def first_lines(error):
    return " ".join(str(error).strip().splitlines()[:2])


# %% [markdown]
# The function that every backend gets: a softmax written by hand, and a GELU.
# %%
torch.manual_seed(0)


def attend(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    weights = e / e.sum(-1, keepdim=True)
    return torch.nn.functional.gelu(weights * x)


x = torch.randn(512, 1024)
expected = attend(x)
# %% [markdown]
# ## `eager`: the graph, run as it is
# This backend compiles nothing. It runs the nodes of Dynamo's graph one by
# one, with the same kernels as eager mode. What is left is Dynamo: capture,
# guards and new bytecode. If a program fails with `backend="eager"`, the
# problem is in capture.
# %%
seen = {}


def own(gm, example_inputs):
    """A backend of our own: keep the graph, run it unchanged."""
    seen["dynamo"] = gm
    return gm.forward


torch.compiler.reset()
torch.compile(attend, backend=own)(x)
draw_graph(seen["dynamo"], "What Dynamo hands over")
# %% [markdown]
# ## `aot_eager`: the graph, in simple operators
# AOTAutograd traces Dynamo's graph once more. Out come ATen operators without
# in-place changes, and for training a backward graph too. `aot_eager` runs
# them one by one. If `eager` works and this fails, look at AOTAutograd first.
# %%
torch.compiler.reset()
try:
    from torch._dynamo.backends.common import aot_autograd

    def keep_aten(gm, example_inputs):
        seen["aten"] = gm
        return gm.forward

    torch.compile(attend, backend=aot_autograd(fw_compiler=keep_aten))(x)
    draw_graph(seen["aten"], "What AOTAutograd makes of it")
except ImportError:
    missing(
        "AOTAutograd's graph", "this torch has no `aot_autograd` helper"
    )
# %% [markdown]
# ## `inductor`: generated code
# Inductor fuses the operators into loops and writes code for them: C++ on a
# CPU, Triton on a GPU. The listing is the beginning of the kernel from this
# run. Look for the loops, and for several operations inside one of them.
# %%
torch.compiler.reset()
backends = ["eager", "aot_eager", "inductor"]
try:
    from torch._inductor.utils import run_and_get_code

    _, sources = run_and_get_code(torch.compile(attend), x)
    lines = "\n".join(sources).splitlines()
    heads = ("void  kernel", "void kernel", "@triton.jit")
    starts = [
        n for n, line in enumerate(lines) if any(h in line for h in heads)
    ]
    kernel = lines[starts[0] :] if starts else lines
    code(
        "\n".join(line[:74] for line in kernel[:30]), title="generated code"
    )
except ImportError:
    missing("Inductor's code", "this torch has no `run_and_get_code`")
except Exception as error:
    missing("Inductor", first_lines(error))
    backends.remove("inductor")
# %% [markdown]
# ## `compilescope_mini`: a small compiler you can read
# This tool comes with a compiler of its own, written to be read in an evening:
# it fuses, plans memory and generates C++, as Inductor does, in a few files.
# It is built on demand, so it needs a C++ compiler.
# %%
torch.compiler.reset()
mini = "compilescope_mini"
if mini not in torch.compiler.list_backends():
    missing(mini, "the installed compilescope doesn't register it")
else:
    try:
        torch.compile(attend, backend=mini)(x)
        backends.append(mini)
        show(f"`{mini}` works on this machine.")
    except Exception as error:
        missing(mini, first_lines(error))
# %% [markdown]
# ## Side by side
# First calls are measured once, in a fresh cache. Later calls take turns; a
# bar is the median of several rounds. The difference is the largest one from
# eager mode: other kernels round differently, so a tiny one is fine.
# %%
choices = {**{name: name for name in backends}, "our own": own}
first, differences = {}, {}
for name, backend in choices.items():
    with fresh_cache():
        compiled = torch.compile(attend, backend=backend)
        first[name] = first_call_seconds(compiled, x)
        differences[name] = (compiled(x) - expected).abs().max().item()


def another(function):
    """A copy: two backends can't share one function's compiled code."""
    code = function.__code__.replace(co_name=f"copy_{len(calls)}")
    return type(function)(code, function.__globals__)


calls = {"no compile": lambda: attend(x)}
for name, backend in choices.items():
    compiled = torch.compile(another(attend), backend=backend)
    calls[name] = lambda compiled=compiled: compiled(x)

if mini in choices:
    show(f"`{mini}` has its own cache, so its first call loads its kernel.")
timings = compare_ms(calls)
later = timings.ms
bars(
    "First call", {name: 1000 * seconds for name, seconds in first.items()}
)
bars("Later calls", later)
table(
    ["backend", "first call, s", "later, ms", "difference"],
    [
        [name, first[name], later[name], f"{differences[name]:.1e}"]
        for name in choices
    ],
)
# %% [markdown]
# ## "`backend="eager"` is eager mode"
# Not quite: Dynamo has captured the function, guards it, and calls the graph
# instead. It exists for debugging, and so does `aot_eager`. Each round below
# also timed the uncompiled function a second time. "Faster" means: in every
# round, and by more than those two ever differed from each other.
# %%
for name in choices:
    word = timings.differs(name)
    show(f"`{name}` is {word} no compilation on this machine.")
# %% [markdown]
# ## On your own program
# - `compilescope run --compile-all --backend aot_eager train.py` runs a program
#   under another backend without editing it.
# - `compilescope diff` compares a model's numbers under a backend with eager
#   mode, and finds the operation where they part.
# - `compilescope minify` makes the smallest program that still fails.
# %% [markdown]
# ## Exercise
# Write `fastest(fn, x, backends)`. `backends` maps names to backends. Return
# the name of the one whose *later* calls are fastest, among those that work
# and whose result is close to `fn(x)`.
# %% tags=["exercise"]
import torch
from compilescope.apps.learn.kit import first_call_seconds


def fastest(fn, x, backends):
    seconds = {}
    for name, backend in backends.items():
        torch.compiler.reset()
        compiled = torch.compile(fn, backend=backend)
        seconds[name] = first_call_seconds(compiled, x)
    return min(seconds, key=seconds.get)


# %% tags=["check"]
def check(answer):
    """Backends that sleep: their order is known, and only a measurement finds it."""
    import time

    import torch

    compiled_by = set()

    def backend_of(name, compile_s, run_s, error=0.0):
        def backend(gm, example_inputs):
            compiled_by.add(name)
            time.sleep(compile_s)
            if run_s is None:
                raise RuntimeError("this backend can't compile that")

            def run(*args):
                time.sleep(run_s)
                return tuple(value + error for value in gm.forward(*args))

            return run

        return backend

    def work(x):
        return torch.sin(x) * 2

    plans = [
        ("b", {"a": (0.0, 0.03), "b": (0.4, 0.005), "c": (0.0, 0.06)}),
        (
            "q",
            {"wrong": (0.0, 0.0, 1.0), "p": (0.0, 0.05), "q": (0.3, 0.01)},
        ),
        ("z", {"broken": (0.0, None), "y": (0.0, 0.05), "z": (0.3, 0.01)}),
    ]
    why = {
        "b": "it compiles slowly and then runs fastest",
        "q": "`wrong` is faster, but its result is wrong",
        "z": "`broken` can't compile the function",
    }
    for right, plan in plans:
        torch.compiler.reset()
        compiled_by.clear()
        backends = {
            name: backend_of(name, *times) for name, times in plan.items()
        }
        try:
            said = answer.fastest(work, torch.ones(4), backends)
        except Exception as error:
            first = (
                str(error).strip().splitlines()[0]
                if str(error).strip()
                else ""
            )
            return f"`fastest` raised {type(error).__name__} ({first}) where {why[right]}."
        if right not in compiled_by:
            return (
                f"`fastest` never compiled `fn` with the backend {right!r}."
            )
        if said != right:
            return f"You chose {said!r} among {list(plan)}; right is {right!r}: {why[right]}."


# %% tags=["solution"]
import torch
from compilescope.apps.learn.kit import median_ms


def fastest(fn, x, backends):
    times = {}
    for name, backend in backends.items():
        torch.compiler.reset()
        compiled = torch.compile(fn, backend=backend)
        try:
            result = compiled(x)
        except Exception:
            continue
        if torch.allclose(result, fn(x), rtol=1e-4, atol=1e-5):
            times[name] = median_ms({name: lambda: compiled(x)}, runs=5)[
                name
            ]
    return min(times, key=times.get)
