# %% [markdown]
# # Modes of torch.compile
# What do the modes change: in the configuration, the kernels, the compile time?
#
# `torch.compile(model, mode=...)` takes a name. We look at what each name stands
# for, and then measure. This lesson uses a GPU if there is one.
# %%
import copy
import difflib
import logging
import random
import re
import statistics
import warnings

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

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
torch.set_grad_enabled(False)
torch.set_num_threads(1)
print("device:", device)

# %% [markdown]
# ## A mode is a set of options
# Each mode changes settings of Inductor, the default backend. Nothing else.
# %%
try:
    from torch._inductor import config, list_mode_options, select_algorithm

    modes = list_mode_options()
except ImportError as error:
    missing("the list of modes", str(error))
    modes = {}
usual = config.get_config_copy() if modes else {}
rows = []
for mode, options in modes.items():
    changed = [
        f"{n} = {v}" for n, v in options.items() if usual.get(n) != v
    ]
    rows.append((mode, ", ".join(changed) or "nothing"))
table(["mode", "sets"], rows)

# %% [markdown]
# - `triton.cudagraphs`: record all kernel launches once and replay them as one
#   CUDA graph. Needs a GPU.
# - `max_autotune`: time several implementations of matrix products and
#   convolutions while compiling, and keep the fastest.
# - `coordinate_descent_tuning`: try more block sizes for Triton kernels. Needs a
#   GPU.
#
# To keep this lesson short, we let autotuning try few Triton kernels, and print
# none of its messages.
# %%
LESS = {
    "test_configs.max_mm_configs": 4,
    "max_autotune_report_choices_stats": False,
}
if modes:
    select_algorithm.PRINT_AUTOTUNE = False
for name, value in LESS.items():
    if name in usual:
        setattr(config, name, value)
for name in ("select_algorithm", "runtime.triton_heuristics"):
    logger = logging.getLogger(f"torch._inductor.{name}")
    logger.setLevel(logging.CRITICAL)


# %% [markdown]
# ## A measurement that misleads
# "reduce-overhead shortens compilation" is a common belief. This is how one gets
# it: compile with one mode, then with the other, and compare. (A random factor
# makes the model new, so that the cache on disk can't know it.)
# %%
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 512)
        self.factor = random.random()

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x)) * self.factor


model = Model().to(device)
x = torch.randn(64, 256, device=device)
torch.compiler.reset()
try:
    naive = {
        "default, compiled first": first_call_seconds(
            torch.compile(model), x
        ),
        "reduce-overhead, second": first_call_seconds(
            torch.compile(model, mode="reduce-overhead"), x
        ),
    }
    INDUCTOR = True
    bars("First call of each, measured once", naive, unit="s")
    first, second = naive.values()
    looks = (
        "less time than default, but"
        if second < first
        else "longer, though"
    )
    show(
        f"Here reduce-overhead took {looks} the two did not start equal: the "
        "first had to start the compiler in this process, too, and left "
        "kernels on disk that the second could use."
    )
except Exception as error:
    INDUCTOR = False
    missing("Inductor", f"it failed: {str(error).splitlines()[0]}")

# %% [markdown]
# ## The same, measured fairly
# Now each compilation gets empty caches, the compiler is already running, and
# the modes take turns in a changing order. We time the first three calls, since
# CUDA graphs are recorded after the first. A difference counts only if the
# ranges of two modes don't overlap. `max-autotune` gets one round only, since
# autotuning may take long on a GPU.
# %%
MODES = ["default", "reduce-overhead", "max-autotune"]
sources, facts = {}, {}


def cold_seconds(mode):
    """The first three calls with empty caches; keeps the generated code."""
    from torch._inductor.utils import run_and_get_code

    with fresh_cache(), compilescope.capture() as seen:
        compiled = torch.compile(model, mode=mode)

        def first_calls():
            sources[mode] = run_and_get_code(compiled, x)[1]
            compiled(x)
            compiled(x)

        seconds = first_call_seconds(first_calls)
    facts[mode] = seen.digest
    return seconds


cold = {mode: [] for mode in MODES}
if INDUCTOR:
    order = ["default", "reduce-overhead"]
    for _ in range(4):
        for mode in order:
            cold[mode].append(cold_seconds(mode))
        order.reverse()
    cold["max-autotune"].append(cold_seconds("max-autotune"))
    middle = {
        mode: statistics.median(taken) for mode, taken in cold.items()
    }
    bars("Cold compilation, median", middle, unit="s")
    rows = [
        (mode, len(taken), min(taken), max(taken))
        for mode, taken in cold.items()
    ]
    table(["mode", "rounds", "fastest, s", "slowest, s"], rows)
    plain, reduced = cold["default"], cold["reduce-overhead"]
    if max(reduced) < min(plain):
        print("Here reduce-overhead compiled faster in every round.")
    elif min(reduced) > max(plain):
        print("Here reduce-overhead compiled more slowly in every round.")
    else:
        show(
            "The ranges of default and reduce-overhead overlap: this run "
            "shows no difference in compile time."
        )


# %% [markdown]
# ## What changed in the kernels
# Inductor's output is source code: the kernels that it generated, and a *wrapper*
# in Python that allocates memory and calls them. It also calls libraries, for
# matrix products for instance. We compare each mode's code with the default's.
# %%
def kernels(source):
    return re.findall(
        r"async_compile\.\w+\(.*?'''(.*?)'''", source, re.DOTALL
    )


def changes(old, new):
    """Lines removed and added, without comments."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0)
    changed = (line for line in lines if line[:3] not in ("---", "+++"))
    return [ln for ln in changed if ln[0] in "-+" and ln[1:2] != "#"]


if INDUCTOR:
    usual, rows = sources["default"][0], []
    for mode in MODES:
        source = sources[mode][0]
        same = kernels(source) == kernels(usual)
        differing = len(changes(usual, source))
        calls = source.count("extern_kernels.")
        same = "same as default" if same else "different"
        rows.append((mode, len(kernels(source)), calls, same, differing))
    columns = ["mode", "kernels", "library calls", "kernel code"]
    table([*columns, "lines that differ"], rows)
    for mode in MODES:
        differing = changes(usual, sources[mode][0])
        if differing:
            print(f"{mode}, the first lines that differ:")
            print("\n".join(line[:76] for line in differing[:4]))
        for reason in facts[mode].cudagraph_skips:
            print(f"{mode}: no CUDA graphs; PyTorch's reason: {reason!r}")

# %% [markdown]
# ## What changed in the run time
# Each mode gets a copy of the model. Versions of one and the same model would
# share a list of compiled code, and be searched for in it at every call.
# %%
if INDUCTOR:
    torch.compiler.reset()
    versions = {"eager": model}
    for mode in MODES:
        versions[mode] = torch.compile(copy.deepcopy(model), mode=mode)
    timings = compare_ms({n: lambda f=f: f(x) for n, f in versions.items()})
    bars("One call, median", timings.ms)
    for mode in MODES:
        print(f"{mode} is {timings.differs(mode)} eager here.")
if device == "cpu":
    why = "It shortens the launching of GPU kernels, and there is no GPU"
    missing("what `reduce-overhead` is for", why)

# %% [markdown]
# ## Autotuning on a CPU
# On a CPU, Inductor has C++ kernels of its own for matrix products, but uses them
# only for weights that are constants. The setting `freezing` makes them so. We
# pass `max_autotune` by `options`, which sets single settings, where `mode` sets
# a group. (You can pass one of the two.) These are the candidates it timed:
# %%
found = []


def autotune():
    """Compile once with autotuning and note each candidate's time in ms."""

    def note(timings, name, *rest):
        found.append((name, {c.name: ms for c, ms in timings.items()}))

    select_algorithm.add_feedback_saver(note)
    with fresh_cache(), config.patch(freezing=device == "cpu"):
        linear = torch.nn.Linear(256, 512).eval().to(device)
        compiled = torch.compile(linear, options={"max_autotune": True})
        seconds = first_call_seconds(compiled, x)
    select_algorithm.clear_feedback_savers()
    return seconds


try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = autotune()
except Exception as error:
    missing("autotuning", f"{type(error).__name__}: {error}".split("\n")[0])
else:
    if found:
        name, candidates = found[0]
        bars(f"Candidates for {name}", candidates)
        usual = statistics.median(cold["default"])
        show(
            f"Compiling this one layer took {seconds:.1f} s. The model above, "
            f"without autotuning, took {usual:.1f} s."
        )
    else:
        missing("a choice", "Inductor had only one candidate")

# %% [markdown]
# ## On your own program
# - `compilescope run train.py` shows compile time by phase, and CUDA graphs that
#   were requested and not used, with the reason.
# - `compilescope run --time train.py` times the compiled code, call by call.
# - `compilescope compare RUN RUN` compares two runs, for instance of two modes.
# %% [markdown]
# ## Exercise
# Write a stopwatch that is not misled. `cold_seconds(mode)` must return how many
# seconds it takes to compile `function` with this mode, each time as if for the
# first time. The check looks at the settings in force while Inductor compiles.
#
# Two things are wrong with the code below. When does `torch.compile` compile? And
# what does the second measurement find on disk?
# %% tags=["exercise"]
from time import perf_counter

import torch


def function(x):
    return torch.sin(x) * torch.cos(x) + 1


def cold_seconds(mode):
    begin = perf_counter()
    torch.compile(function, mode=mode)
    return perf_counter() - begin


# %% tags=["check"]
def check(answer):
    """Watch what is compiled while the answer measures, and how long it takes."""
    from time import perf_counter
    from unittest import mock

    import torch
    from torch._inductor import compile_fx, config, list_mode_options

    import compilescope
    from compilescope.apps.learn.kit import fresh_cache

    usual, modes = config.get_config_copy(), list_mode_options()
    names = {name for options in modes.values() for name in options}
    compile_graph, active = compile_fx.compile_fx, []

    def note(*args, **kwargs):
        patches = kwargs.get("config_patches") or {}
        active.append({**config.get_config_copy(), **patches})
        return compile_graph(*args, **kwargs)

    with fresh_cache():  # start the compiler before anything is measured
        torch.compile(lambda x: x * 2)(torch.ones(8))
    for mode in ("default", "reduce-overhead", "default"):
        active.clear()
        begin = perf_counter()
        noting = mock.patch.object(compile_fx, "compile_fx", note)
        with noting, compilescope.capture() as seen:
            said = answer.cold_seconds(mode)
        passed = perf_counter() - begin
        compiling = seen.digest.compile_seconds
        if not isinstance(said, float):
            return (
                f"`cold_seconds({mode!r})` returned {said!r}, not seconds."
            )
        if not seen.graphs:
            return "Nothing was compiled: `torch.compile` waits for the first call."
        caches = seen.digest.caches.values()
        if any(count.hits for count in caches):
            return f"With mode {mode!r} it found the result in the cache on disk."
        if not any(count.misses or count.bypasses for count in caches):
            return f"With mode {mode!r} Inductor compiled nothing."
        for name in sorted(names):
            wanted = modes.get(mode, {}).get(name, usual[name])
            found = [had[name] for had in active if had[name] != wanted]
            if found or not active:
                what = f"{name} = {found[0]}" if found else "other settings"
                return f"With mode {mode!r} it compiled with `{what}`: pass the mode on."
        if said < 0.8 * compiling:
            return (
                f"It returned {said:.3f} s, but compiling took {compiling:.3f} s: "
                "the first call must be inside the measured time."
            )
        if said > passed:
            return (
                f"It returned {said:.3f} s, but only {passed:.3f} s passed."
            )
        if said > compiling + 0.5 + 0.5 * compiling:
            return (
                f"It returned {said:.3f} s, but compiling took {compiling:.3f} s: "
                "measure nothing else."
            )
    return None


# %% tags=["solution"]
import torch

from compilescope.apps.learn.kit import first_call_seconds, fresh_cache


def function(x):
    return torch.sin(x) * torch.cos(x) + 1


def cold_seconds(mode):
    with fresh_cache():
        compiled = torch.compile(function, mode=mode)
        return first_call_seconds(compiled, torch.randn(1000))
