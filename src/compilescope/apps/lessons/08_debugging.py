# %% [markdown]
# # Debugging
# My compiled program is slow or fails: how do I find out why?
#
# There are four usual suspects. A *graph break* splits a graph in two. A
# *recompile* compiles the same function again. A *suppressed error* makes a
# function run in eager mode, and the program continues. A *backend error* ends
# the program. We take each apart twice: first with what PyTorch prints, then
# with compilescope.
#
# This program has all four. With `--strict` the error is not suppressed.
# %%
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from compilescope.apps.learn.kit import bars, code, table

PROGRAM = '''
import sys
import torch

torch._dynamo.config.suppress_errors = "--strict" not in sys.argv


def picky(gm, example_inputs):
    """A backend for a chip that can't sort."""
    for node in gm.graph.nodes:
        if "sort" in node.name:
            raise NotImplementedError("this chip has no sort")
    return gm.forward


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x * self.step


@torch.compile(backend="eager")
def scale(x):
    y = torch.relu(x)
    if y.sum() > 0:
        y = y / y.sum()
    return y + 1


@torch.compile(backend=picky)
def top(x):
    return x.sort().values[-2:] * 2


x = torch.arange(4.0)
counter = torch.compile(Counter(), backend="eager")
for _ in range(3):
    counter(x)
print(scale(x), top(x))
'''.lstrip()

folder = tempfile.TemporaryDirectory()
Path(folder.name, "trouble.py").write_text(PROGRAM)


def python(*arguments, **environment):
    """Run Python in a new process, in the program's folder."""
    own = {"COLUMNS": "80", "NO_COLOR": "1", "COMPILESCOPE_DIR": "runs"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder.name,
        env={**os.environ, **own, **environment},
        capture_output=True,
        text=True,
    )


code(PROGRAM, title="trouble.py")

# %% [markdown]
# Each run takes a few seconds, so we start all of them now, two at a time, and
# look at their output one by one.
#
# - `TORCH_LOGS` switches on kinds of messages, here two.
# - `TORCHDYNAMO_VERBOSE=1` makes tracebacks complete.
# - `compilescope run` needs neither, and no change to the program.
# %%
pool = ThreadPoolExecutor(2)
tool = ("-m", "compilescope", "run", "trouble.py")
logs = {"TORCH_LOGS": "graph_breaks,recompiles"}
logged = pool.submit(python, "trouble.py", **logs)
recorded = pool.submit(python, *tool)
failed = pool.submit(python, "trouble.py", "--strict")
full = {"TORCHDYNAMO_VERBOSE": "1"}
verbose = pool.submit(python, "trouble.py", "--strict", **full)
elsewhere = {"COMPILESCOPE_DIR": "strict"}
recorded_failure = pool.submit(python, *tool, "--strict", **elsewhere)

# %% [markdown]
# ## Is there a problem at all?
# A common belief is that a program that prints the right numbers and exits
# with status 0 was compiled. This one does both:
# %%
logged = logged.result()
print("stdout:", logged.stdout.strip())
print("exit status:", logged.returncode)

# "V1116 00:36:41.809000 22605 torch/_dynamo/x.py:12] [0/0] [__recompiles] "
PREFIX = re.compile(r"^[A-Z]\d{4} \S+ \d+ [^\]]+\] ?(\[\S+\] )*")
log = {"graph_breaks": [], "recompiles": [], "warnings": []}
for line in logged.stderr.splitlines():
    kind = next((k for k in log if f"[__{k}]" in line), "warnings")
    log[kind].append(PREFIX.sub("", line))
counts = {kind: len(lines) for kind, lines in log.items()}
bars("Lines on stderr", counts, unit="lines")

# %% [markdown]
# The warnings appear without `TORCH_LOGS`, too, but are easily overlooked in
# the output of a long training run. We pick out the lines that matter.


# %%
def pick(kind, *starts):
    """The first line that begins with each of these, shortened."""
    for start in starts:
        found = (ln.strip() for ln in log[kind])
        line = next((ln for ln in found if ln.startswith(start)), None)
        if line:
            line = re.sub(r" {2,}", "  ", line).replace(folder.name, ".")
            print(line if len(line) < 77 else line[:76] + "…")


# %% [markdown]
# ## 1. The graph break
# Read three things: where, the reason, and the hints. The hints are general;
# they don't look at your code.
# %%
pick(
    "graph_breaks",
    "Graph break in",
    "Graph Break Reason",
    "Explanation",
    "Hint: Use",
    "For more details",
)

# %% [markdown]
# ## 2. The recompile
# Below "triggered by" stands which compilation did not fit this call (the
# number of the function, a slash, and the number of the compilation), and then
# the guard that failed: what that compilation relied on.
# %%
pick("recompiles", "Recompiling function", "triggered by", "- ")
again = [ln for ln in log["recompiles"] if ln.startswith("Recompiling")]
print(f"{len(again)} recompiles in 3 calls")

# %% [markdown]
# ## 3. The suppressed error
# `suppress_errors` turns a failed compilation into a warning. The first line
# says which function now runs in eager mode, the last ones say why. Between
# them is PyTorch's own stack.
# %%
pick("warnings", "WON'T CONVERT")
stack = [ln for ln in log["warnings"] if ln.lstrip().startswith("File ")]
print(f"... {len(stack)} stack frames ...")
pick("warnings", "torch._dynamo.exc", "NotImplementedError")

# %% [markdown]
# ## The same program in compilescope
# `compilescope run trouble.py` lists the causes, most expensive first:


# %%
def after(text, start):
    """The part of a report that begins with the line `start`."""
    lines = text.splitlines()
    at = [i for i, line in enumerate(lines) if line.startswith(start)]
    return "\n".join(lines[at[-1] :] if at else lines[-40:])


print(after(recorded.result().stderr, "The program ended"))

# %% [markdown]
# The suppressed error is a cause like any other. `explain` says what each one
# means in this program, and what to change:
# %%
explained = python("-m", "compilescope", "explain", "--break", "1")
print(after(explained.stdout, "  1 "))

# %% [markdown]
# ## 4. The backend error
# Now without `suppress_errors`. The exception ends the program. PyTorch hides
# its own frames; `TORCHDYNAMO_VERBOSE=1` shows them.
# %%
failed, verbose = failed.result(), verbose.result()
print("exit status:", failed.returncode)
lines = {
    "as it is": len(failed.stderr.splitlines()),
    "TORCHDYNAMO_VERBOSE=1": len(verbose.stderr.splitlines()),
}
bars("Lines of traceback", lines, unit="lines")
for line in failed.stderr.splitlines():
    if line.startswith(("torch._dynamo.exc.", "NotImplementedError")):
        print(line)

# %% [markdown]
# Which stage fails? Compile the function with simpler backends. `eager` only
# captures the graph, `aot_eager` also runs AOTAutograd. If both work, the
# fault is in the backend itself.


# %%
def top(x):
    return x.sort().values[-2:] * 2


def picky(gm, example_inputs):
    for node in gm.graph.nodes:
        if "sort" in node.name:
            raise NotImplementedError("this chip has no sort")
    return gm.forward


rows = []
for name, backend in (
    ("eager", "eager"),
    ("aot_eager", "aot_eager"),
    ("picky", picky),
):
    torch.compiler.reset()
    try:
        torch.compile(top, backend=backend)(torch.arange(4.0))
        rows.append((name, "works"))
    except Exception as error:
        last = [ln for ln in str(error).splitlines() if "Error" in ln]
        rows.append((name, last[0] if last else type(error).__name__))
table(["backend", "result"], rows)

# %% [markdown]
# compilescope records a program that fails, too, and then suggests `minify`,
# which makes a smaller program that fails in the same way:
# %%
report = after(recorded_failure.result().stderr, "The program ended")
print(report.split("Causes")[0])
print("Next:", report.split("Next: ")[-1].split("  #")[0])
pool.shutdown()
folder.cleanup()

# %% [markdown]
# ## On your own program
# - `compilescope run train.py` finds all four, `compilescope explain` says why.
# - `compilescope fix train.py` tries changes and shows those that it verified.
# - `compilescope minify --predicate crash train.py` makes a small script that
#   fails in the same way.
# - `compilescope logs trace_dir` reads logs of a run that you can't repeat.
# %% [markdown]
# ## Exercise
# This model has a graph break and recompiles at every step. Change it so that
# it is compiled **once**, to **one** graph, and computes the same in every
# call. The check compiles the model itself.
# %% tags=["exercise"]
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.step = 0

    def forward(self, x):
        self.step += 1
        y = self.linear(x)
        largest = y.abs().max()
        if largest > 10:
            y = y / largest
        return y / self.step


# %% tags=["check"]
def check(answer):
    """Compile the model under capture, and compare each call with the original."""
    import torch

    import compilescope

    torch.compiler.reset()
    torch.manual_seed(0)
    model = answer.Model()
    linear = torch.nn.Linear(4, 4)
    try:
        model.linear.load_state_dict(linear.state_dict())
    except (AttributeError, RuntimeError):
        return "The model needs its layer `linear` with 4 inputs and 4 outputs."
    inputs = [torch.randn(3, 4), 100 * torch.randn(3, 4), torch.randn(3, 4)]
    with compilescope.capture() as seen, torch.no_grad():
        compiled = torch.compile(model, backend="eager")
        for step, x in enumerate(inputs * 2, 1):
            y = linear(x)
            largest = y.abs().max()
            expected = (y / largest if largest > 10 else y) / step
            if not torch.allclose(compiled(x.clone()), expected, atol=1e-6):
                return f"Call {step} computes something else than the original."
    graphs, recompiles = (
        len(seen.graphs),
        sum(f.count for f in seen.recompiles),
    )
    if not graphs:
        return "It was not compiled: the model runs in eager mode."
    if seen.breaks:
        first = seen.breaks[0]
        return f"There is a graph break at `{first.source.strip()}`."
    if recompiles:
        guard = seen.recompiles[0].causes[0].guard
        return f"It was compiled {recompiles + 1} times; `{guard}` failed."
    if seen.eager_frames:
        return "Part of the model fell back to eager mode."
    if graphs != 1:
        return f"There are {graphs} graphs instead of 1."
    if seen.graphs[0].ops < 4:
        return f"The graph has {seen.graphs[0].ops} operations: most ran elsewhere."
    return None


# %% tags=["solution"]
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        # A tensor is an input of the graph; an int would be a constant in it.
        self.register_buffer("step", torch.zeros(()))

    def forward(self, x):
        self.step += 1
        y = self.linear(x)
        largest = y.abs().max()
        # Both sides are computed, and no decision is needed while tracing.
        y = torch.where(largest > 10, y / largest, y)
        return y / self.step
