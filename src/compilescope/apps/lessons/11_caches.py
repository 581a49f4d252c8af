# %% [markdown]
# # Recompiles and caches
# What is compiled again, and where is the result kept?
#
# There are two kinds of caches. In memory, each function has a list of compiled
# versions, each behind its *guards* (the conditions under which it is right). On
# disk, Inductor keeps generated code for later processes. A *recompile* is a call
# that fits no entry in memory; the disk can only make it cheaper.
# %%
import logging

import torch

import compilescope
from compilescope.apps.learn.kit import (
    bars,
    first_call_seconds,
    fresh_cache,
    median_ms,
    missing,
    show,
    table,
)

# The lesson shows recompiles itself.
logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
compiles = []


def count(gm, example_inputs):
    """A backend that compiles nothing and counts how often it is asked."""
    compiles.append(gm)
    return gm.forward


def compiles_in(function, *args):
    before = len(compiles)
    function(*args)
    return len(compiles) - before


# %% [markdown]
# ## In memory: one entry for each set of guards
# `mode` is a Python string, so its value is part of the guards. A new value fits
# no entry: Dynamo compiles once more. A value that was seen before finds its
# entry.
# %%


def blend(x, mode):
    return x.sin() if mode == "smooth" else x * len(mode)


x = torch.ones(8)
compiled = torch.compile(blend, backend=count)
with compilescope.capture() as recorded:
    rows = [
        [mode, compiles_in(compiled, x, mode)]
        for mode in ("smooth", "sharp", "smooth", "dull", "sharp")
    ]
table(["call with mode", "compilations"], rows)
# %% [markdown]
# Why was it compiled again? This tool keeps the guard that failed.
# %%
table(
    ["function", "guard that failed", "value", "times"],
    [
        [function.function, cause.guard, cause.actual, cause.count]
        for function in recorded.recompiles
        for cause in function.causes
    ],
)
# %% [markdown]
# ## The limit
# Entries are tried one after the other, so their number is limited. Beyond
# `recompile_limit`, Dynamo compiles this function no more, and a call that fits
# no entry runs in eager mode. Look for the first 0.
# %%
torch.compiler.reset()
limit = torch._dynamo.config.recompile_limit
modes = ["m" * (n + 1) for n in range(limit + 3)]
counts = [compiles_in(compiled, x, mode) for mode in modes]
print(f"limit {limit}; compilations in each call:", *counts)
if 0 in counts:
    eager = counts.count(0)
    show(f"The last {eager} calls ran in eager mode, as will new modes.")
# %% [markdown]
# ## What a call pays to find its entry
# The entry that was used last is usually tried first. To measure the search,
# compare a loop that stays with one entry with one that takes turns.
# %%
torch.compiler.reset()
known = modes[: min(limit, 6)]
for mode in known:
    compiled(x, mode)


def same():
    for _ in known:
        compiled(x, known[0])


def turns():
    for mode in known:
        compiled(x, mode)


ms = median_ms({"one entry": same, f"{len(known)} entries in turn": turns})
bars("One call", {k: 1000 * v / len(known) for k, v in ms.items()}, "µs")
# %% [markdown]
# ## "Calling `torch.compile` again compiles again"
# Entries belong to the function's *code*, not to what `torch.compile` returns.
# A second wrapper finds the first one's entries. But functions made by one
# `def` share their code, too, and with it the list and the limit.
# %%
torch.compiler.reset()


def wave(x):
    return x.cos()


def make(name):
    def scaled(x):
        return x * len(name)

    return scaled


wrappers = [torch.compile(wave, backend=count) for _ in range(3)]
made = [torch.compile(make(mode), backend=count) for mode in modes]
table(
    ["called once each", "compilations"],
    [
        [
            f"{len(wrappers)} wrappers of one function",
            sum(compiles_in(f, x) for f in wrappers),
        ],
        [
            f"{len(made)} functions made by one `def`",
            sum(compiles_in(f, x) for f in made),
        ],
    ],
)
# %% [markdown]
# ## On disk
# `torch.compiler.reset()` empties the caches in memory, as in a new process.
# Dynamo then captures the function again; AOTAutograd and Inductor look for the
# *graph* on disk. The table shows first calls, each measured once. `renamed`
# differs from `first` in names, `changed` in a constant.
# %%


def first(x):
    y = torch.sin(x) + 1
    return torch.relu(y)


def renamed(value):
    shifted = torch.sin(value) + 1
    return torch.relu(shifted)


def changed(x):
    y = torch.sin(x) + 2
    return torch.relu(y)


try:
    from torch._dynamo.utils import counters
except ImportError:
    counters = None
    missing("the caches' counters", "this torch has none by that name")


def disk_hits():
    """Since the last `reset`, as PyTorch counts them."""
    found = counters["inductor"] if counters is not None else {}
    return found.get("fxgraph_cache_hit", 0)


def new_process(function, x):
    """What a new process would find; its first call, in milliseconds."""
    torch.compiler.reset()
    before = disk_hits()
    seconds = first_call_seconds(torch.compile(function), x)
    return 1000 * seconds, "found" if disk_hits() > before else "not found"


big = torch.ones(64, 64)
has_inductor = True
with fresh_cache():
    try:
        rows = [["empty cache", *new_process(first, big)]]
        rows.append(["the same again", *new_process(first, big)])
        rows.append(["other names", *new_process(renamed, big)])
        rows.append(["other constant", *new_process(changed, big)])
        rows.append(
            ["other shape", *new_process(first, torch.ones(32, 64))]
        )
        packed = torch.compiler.save_cache_artifacts()
    except Exception as error:
        has_inductor = False
        why = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        missing("Inductor", why)
if has_inductor:
    table(["first call", "ms", "graph on disk"], rows)
    bars("First call", {name: ms for name, ms, _ in rows})
# %% [markdown]
# ## Take the cache with you
# A new machine begins with an empty cache. `torch.compiler.save_cache_artifacts`
# packs what this process compiled into bytes, and `load_cache_artifacts` unpacks
# them elsewhere: here, into another empty cache.
# %%
if has_inductor and packed is not None:
    data, _ = packed
    with fresh_cache():
        torch.compiler.load_cache_artifacts(data)
        took, where = new_process(first, big)
    show(f"{len(data):,} bytes packed. First call: graph {where} on disk.")
elif has_inductor:
    missing("packed caches", "nothing was there to save")
# %% [markdown]
# ## On your own program
# - `compilescope run train.py` lists every recompile with the guard that failed,
#   and what the caches did.
# - `compilescope fix train.py` tries changes that avoid recompiles.
# - `compilescope check --max-recompiles 0 train.py` fails if there is one.
# - `TORCH_LOGS=recompiles python train.py` prints each reason.
# %% [markdown]
# ## Exercise
# Write `on_disk(fn, x)`. It compiles `fn` with Inductor for the argument `x`, and
# returns True if Inductor found the graph on disk, False if it had to build it.
# What is in *memory* must not matter. The starter asks too late.
# %% tags=["exercise"]
import torch
from torch._dynamo.utils import counters


def hits():
    return counters["inductor"]["fxgraph_cache_hit"]


def on_disk(fn, x):
    compiled = torch.compile(fn)
    compiled(x)
    before = hits()
    compiled(x)
    return hits() > before


# %% tags=["check"]
def check(answer):
    """Functions that are new, known, known by another name, and forgotten."""
    import torch

    import compilescope
    from compilescope.apps.learn.kit import fresh_cache

    def first(x):
        y = torch.cos(x) * 3
        return torch.tanh(y)

    def renamed(value):
        scaled = torch.cos(value) * 3
        return torch.tanh(scaled)

    def changed(x):
        y = torch.cos(x) * 4
        return torch.tanh(y)

    x = torch.ones(16, 16)
    plans = [
        [
            ("a new function", first, False),
            ("the same function again", first, True),
            ("the same graph with other names", renamed, True),
            ("another constant", changed, False),
        ],
        [
            (
                "the same function, after the disk cache was emptied",
                first,
                False,
            )
        ],
    ]
    for plan in plans:
        with fresh_cache():
            for name, fn, right in plan:
                with compilescope.capture() as seen:
                    said = answer.on_disk(fn, x)
                if not seen.graphs:
                    return f"For {name}, nothing was compiled."
                if said is not right:
                    return (
                        f"For {name} you said {said!r}; right is {right}."
                    )


# %% tags=["solution"]
import torch
from torch._dynamo.utils import counters


def hits():
    return counters["inductor"]["fxgraph_cache_hit"]


def on_disk(fn, x):
    torch.compiler.reset()
    before = hits()
    torch.compile(fn)(x)
    return hits() > before
