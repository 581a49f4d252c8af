# %% [markdown]
# # Compile overhead and speed-up
# When does `torch.compile` pay for itself?
#
# Compiling costs time once. Compiled code saves time on every later call.
# Whether that is a good deal depends on both numbers, and on how often you
# call the function. This lesson measures all three on your machine.
# %%
import math

import torch

import compilescope
from compilescope.apps.learn.kit import (
    bars,
    compare_ms,
    first_call_seconds,
    fresh_cache,
    missing,
    show,
    table,
)

torch.manual_seed(0)
torch.set_num_threads(1)  # Other programs disturb one thread the least.
print(f"torch {torch.__version__}, {torch.get_num_threads()} thread")


def smooth(x):
    y = torch.sin(x) * 0.5 + 0.5
    y = torch.sigmoid(y * x) - torch.tanh(y)
    return (y * y + 1).sqrt()


x = torch.randn(1000, 1000)
# %% [markdown]
# ## `torch.compile` itself does nothing yet
# The call below only wraps the function. The work starts when you call the
# result, because the compiler needs to see real arguments. That is why the
# *first call* is slow, and why it is the one to measure.
#
# A first call can only be measured once. `fresh_cache()` makes sure that it
# is a real one: nothing that was compiled earlier is found on disk.
# %%
with fresh_cache():
    wrapping = first_call_seconds(torch.compile, smooth)
    with compilescope.capture() as first_run:
        compiled = torch.compile(smooth)
        first = first_call_seconds(compiled, x)
    second = first_call_seconds(compiled, x)

table(
    ["step", "milliseconds"],
    [
        ["`torch.compile(smooth)`", wrapping * 1000],
        ["first call: compile and run", first * 1000],
        ["second call: run", second * 1000],
    ],
    title="Each measured once",
)
# %% [markdown]
# ## Where the first call went
# Three compilers work one after the other. **Dynamo** turns Python bytecode
# into a graph. **AOTAutograd** rewrites that graph into simple operators.
# **Inductor** generates a kernel and, on a CPU, runs your C++ compiler on it.
# PyTorch counts the time of each, nested in the one before; the bars below
# are the differences.
# %%
phases = first_run.digest.phases_seconds
dynamo = phases.get("dynamo_cumulative_compile_time_us", 0.0)
aot = phases.get("aot_autograd_cumulative_compile_time_us", 0.0)
inductor = phases.get("inductor_cumulative_compile_time_us", 0.0)

if dynamo >= aot >= inductor > 0:
    bars(
        "Compile time of one small function",
        {
            "Dynamo": 1000 * (dynamo - aot),
            "AOTAutograd": 1000 * (aot - inductor),
            "Inductor": 1000 * inductor,
        },
    )
else:
    missing("the time of each compiler", "this torch doesn't count it")
# %% [markdown]
# ## Later calls
# Later calls check a few conditions (the *guards*: same dtype, same shape, and
# so on) and run the kernel. Each number is a median, and the two versions take
# turns, so that a busy machine slows both down. There are several rounds, each
# with eager mode a second time: a difference is stated only where every round
# shows it, and larger than any between eager mode and itself.
# %%
compiled = torch.compile(smooth)
timings = compare_ms(
    {"eager": lambda: smooth(x), "compiled": lambda: compiled(x)}
)
ms = timings.ms
bars("One call on 1000 x 1000 numbers", ms)
verdict = timings.differs("compiled")
show(f"Compiled is {verdict} eager mode on this machine.")
# %% [markdown]
# ## How many calls until it pays?
# After `n` calls, eager mode has spent `n * eager`. The compiled version has
# spent `first + (n - 1) * compiled`. They meet at
# `n = (first - compiled) / (eager - compiled)`, if `compiled` is the smaller
# one. If not, they never meet.
# %%
saved = ms["eager"] - ms["compiled"]
pays = 100
if verdict == "faster than" and saved > 0:
    pays = max(1, math.ceil((1000 * first - ms["compiled"]) / saved))
    show(
        f"On this machine compiling `smooth` pays after about {pays:,} calls."
    )
elif verdict.startswith("too noisy"):
    show("When compiling `smooth` pays is too noisy to tell here and now.")
else:
    show("On this machine compiling `smooth` never pays: it is no faster.")


def seconds_after(calls):
    eager = calls * ms["eager"] / 1000
    return eager, first + (calls - 1) * ms["compiled"] / 1000


marks = sorted({1, max(1, pays // 4), pays, pays * 4})
table(
    ["calls", "eager, s", "compiled, s", "ahead"],
    [
        [n, a, b, "eager" if a < b else "compiled"]
        for n in marks
        for a, b in [seconds_after(n)]
    ],
    title="Total time, computed from the times above",
)
# %% [markdown]
# ## "It makes everything 2 to 10 times faster"
# You will read that often. The gain depends on what the time is spent on:
#
# - in a chain of elementwise operations on a large tensor, eager mode writes
#   and reads a large tensor at every step, and one fused kernel does not;
# - a large matrix product is one call into a library either way;
# - on a tiny tensor there is little work, so the cost of calling counts.
#
# So measure. A bar is eager time divided by compiled time: above 1 means
# faster, below 1 means slower, where the rounds agree.
# %%
weights = torch.randn(512, 512)
programs = {
    "elementwise chain": (smooth, torch.randn(1000, 1000)),
    "matrix product": (lambda x: x @ weights, torch.randn(512, 512)),
    "tiny tensor": (lambda x: x * 2 + 1, torch.randn(4)),
}
gains = {}
for name, (function, argument) in programs.items():
    torch.compiler.reset()
    fast = torch.compile(function)
    calls = {
        "eager": lambda: function(argument),
        "compiled": lambda: fast(argument),
    }
    gains[name] = compare_ms(calls)

bars(
    "Eager time / compiled time",
    {
        name: each.ms["eager"] / each.ms["compiled"]
        for name, each in gains.items()
    },
    unit="x",
)
for name, each in gains.items():
    least, most = each.share("compiled")
    verdict = each.differs("compiled")
    show(f"{name}: compiled is {verdict} eager mode.")
    if verdict == "faster than" and 0.1 <= least <= most <= 0.5:
        show("  2 to 10 times faster in every round.")
# %% [markdown]
# ## A new process pays less
# Inductor keeps what it compiled on disk. After `torch.compiler.reset()` this
# process has forgotten everything, like a new one, but the files are there:
# Dynamo runs again, and Inductor can load its kernel instead of building it.
# %%
with fresh_cache():
    cold = first_call_seconds(torch.compile(smooth), x)
    torch.compiler.reset()
    warm = first_call_seconds(torch.compile(smooth), x)

bars(
    "First call",
    {"empty cache": 1000 * cold, "filled cache": 1000 * warm},
)
# %% [markdown]
# ## On your own program
# - `compilescope run train.py` shows what was compiled, how long it took, and
#   which part of that time graph breaks and recompiles caused.
# - `compilescope run --time train.py` also times every call, inside and
#   outside compiled graphs.
# - `compilescope show` prints the summary again.
# %% [markdown]
# ## Exercise
# Write `pays_after(fn, x, backend)`. It compiles `fn` with `backend`,
# *measures* what it needs on the argument `x`, and returns the number of calls
# after which compiling has paid off: `math.inf` if it never does.
# %% tags=["exercise"]
import math

import torch
from compilescope.apps.learn.kit import first_call_seconds, median_ms


def pays_after(fn, x, backend):
    torch.compiler.reset()
    compiled = torch.compile(fn, backend=backend)
    first = first_call_seconds(compiled, x)
    ms = median_ms({"eager": lambda: fn(x)})
    return 1000 * first / ms["eager"]


# %% tags=["check"]
def check(answer):
    """Times are set by sleeping, so that only a real measurement fits them."""
    import math
    import time

    import torch

    @torch.library.custom_op("lesson01::work", mutates_args=())
    def work(x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.020)
        return x.clone()

    work.register_fake(torch.empty_like)
    compiles = []

    def backend_that_runs(seconds):
        def backend(gm, inputs):
            compiles.append(seconds)
            time.sleep(0.5)

            def run(x):
                time.sleep(seconds)
                return (x.clone(),)

            return run

        return backend

    for seconds, least, most in ((0.016, 70, 600), (0.005, 20, 150)):
        n = answer.pays_after(
            lambda x: work(x), torch.ones(2), backend_that_runs(seconds)
        )
        if seconds not in compiles:
            return "`pays_after` never compiled `fn` with the backend it was given."
        if not isinstance(n, (int, float)) or not least <= n <= most:
            return (
                f"With 20 ms in eager mode, {1000 * seconds:.0f} ms compiled and half a "
                f"second to compile, you said {n!r}; right is between {least} and {most}."
            )
    n = answer.pays_after(
        lambda x: work(x), torch.ones(2), backend_that_runs(0.030)
    )
    if n != math.inf:
        return f"The compiled code was slower than eager, and you said {n!r}, not `math.inf`."


# %% tags=["solution"]
import math

import torch
from compilescope.apps.learn.kit import first_call_seconds, median_ms


def pays_after(fn, x, backend):
    torch.compiler.reset()
    compiled = torch.compile(fn, backend=backend)
    first = 1000 * first_call_seconds(compiled, x)
    ms = median_ms(
        {"eager": lambda: fn(x), "compiled": lambda: compiled(x)}
    )
    saved = ms["eager"] - ms["compiled"]
    if saved <= 0:
        return math.inf
    return (first - ms["compiled"]) / saved
