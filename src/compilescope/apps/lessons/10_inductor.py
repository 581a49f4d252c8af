# %% [markdown]
# # Inductor
# How does a graph become a kernel, and what is fused on the way?
#
# Inductor takes AOTAutograd's graph of ATen operators. It *lowers* each
# operator to loops (its IR), *fuses* loops that can run together, and *generates
# code* for what is left: C++ on a CPU, Triton on a GPU. This lesson looks at one
# small function at each of these steps.
# %%
import re

import torch

import compilescope
from compilescope.apps.learn.kit import (
    bars,
    beside,
    code,
    compare_ms,
    draw_graph,
    fresh_cache,
    missing,
    show,
    table,
)

torch.manual_seed(0)
try:
    from torch._inductor import config

    has_hooks = hasattr(config, "_post_fusion_custom_pass")
    if not has_hooks:
        missing("Inductor's IR", "this torch has no hook around fusion")
except ImportError as error:
    has_hooks = False
    missing("Inductor's IR", str(error))


def attend(x, w):
    y = torch.sin(x) * 2
    z = torch.relu(y @ w)
    e = (z - z.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


x, w = torch.randn(64, 128), torch.randn(128, 32)
# %% [markdown]
# ## What Inductor gets
# Operators that don't change their inputs, each with its shape.
# %%
seen = {}
try:
    from torch._dynamo.backends.common import aot_autograd

    def keep(gm, example_inputs):
        seen["aten"] = gm
        return gm.forward

    torch.compile(attend, backend=aot_autograd(fw_compiler=keep))(x, w)
    draw_graph(seen["aten"], "ATen operators")
except ImportError as error:
    missing("AOTAutograd's graph", str(error))
# %% [markdown]
# ## The IR: one loop for several operators
# Inductor calls two functions of your choice with its list of loops: before and
# after fusion. These note what they get. The cache is empty in this block:
# otherwise Inductor could load finished code and never build an IR.
# %%


def kind(node):
    # "MultiOutput" only names one of several results of a library call.
    if type(getattr(node, "node", None)).__name__ == "MultiOutput":
        return "result"
    name = type(node).__name__
    return "library call" if name.startswith("Extern") else "loop"


def compile_noting(function, *args, **options):
    """Compile and run; also return what was there before and after fusion."""
    before, after = [], []

    def note_before(nodes):
        before.extend((n.get_name(), kind(n), n.debug_str()) for n in nodes)
        return nodes

    def note_after(nodes):
        after.extend((n.get_name(), kind(n)) for n in nodes)
        return nodes

    hooks = {
        "_pre_fusion_custom_pass": note_before,
        "_post_fusion_custom_pass": note_after,
    }
    with torch.no_grad(), config.patch({**hooks, **options}):
        compiled = torch.compile(function)
        compiled(*args)
    return compiled, before, after


if has_hooks:
    try:
        with fresh_cache(), compilescope.capture() as recorded:
            _, before, after = compile_noting(attend, x, w)
    except Exception as error:
        has_hooks = False
        missing(
            "Inductor",
            f"{type(error).__name__}: {str(error).splitlines()[0]}",
        )
if has_hooks:
    table(
        ["name", "what it is", "computes with"],
        [
            [
                name,
                what,
                ", ".join(re.findall(r" = ops\.(\w+)\(", text))
                or "".join(re.findall(r"kernel = (\S+)", text)),
            ]
            for name, what, text in before
        ],
        title="Before fusion",
    )
# %% [markdown]
# `sin` and `mul` are already one loop, before any fusion. Lowering an
# elementwise operator only notes *how to compute one element*; the next operator
# uses that directly, so no tensor is needed in between. A value is stored where
# it has to be: for a library call, for a reduction, as a result, or where
# computing it again would cost more. Here is a complete loop of the IR:
# %%
if has_hooks:
    loops = [text for _, what, text in before if what == "loop"]
    body = loops[0][loops[0].find("class ") :]
    code(body, title="the first loop")
# %% [markdown]
# ## Fusion
# The *scheduler* then puts loops together that run over the same elements or
# rows, so that what one writes is still in a register or in the cache when the
# next one reads it. A matrix product is a library call here; it stays alone.
# %%
if has_hooks:
    table(["after fusion", "what it is"], after)
    show(f"{len(before)} steps before fusion, {len(after)} after.")
# %% [markdown]
# ## The kernel beside your line
# Each IR node remembers which operators it came from, and each operator which
# line of your source. This tool records both. At the left is your function; at
# the right, what the generated code calls. Equal numbers belong together.
# %%
from compilescope.knowledge.source.spots import Sources
from compilescope.knowledge.analysis.stages.staged_graphs import (
    staged_graphs,
)
from compilescope.knowledge.analysis.stages.panes import stage_panes
from compilescope.knowledge.analysis.stages.reader import StageReader


def source_and_kernels(run):
    """The lines of your function and of the generated code."""
    graph = staged_graphs(run)[-1]
    reader = StageReader(run, Sources(run))
    panes = stage_panes(graph, graph.stages, reader)
    lines = {pane.title: pane.lines for pane in panes}
    own = [line for line in lines["Your source"] if line.number]
    return own, lines.get("Kernels", ())


CALL = re.compile(
    r"    (?:\w+ = )?(?:\w*fused|extern_kernels\.|torch\.ops\.)"
)
source, kernels = (
    source_and_kernels(recorded.run) if has_hooks else ((), ())
)
calls = [line for line in kernels if line.kin and CALL.match(line.text)]
if calls:
    beside(
        ("your source", "\n".join(line.text for line in source)),
        ("calls", "\n".join(line.text.strip() for line in calls)),
        [
            (left, right)
            for left, line in enumerate(source, 1)
            for right, call in enumerate(calls, 1)
            if set(line.kin) & set(call.kin)
        ],
    )
elif has_hooks:
    missing("the origin of kernels", "this torch doesn't report it")
# %% [markdown]
# The first kernel itself. On a CPU, `at::vec::Vectorized` computes several
# elements with one instruction, and `#pragma omp` divides the loop among
# threads. On a GPU you see a Triton function instead.
# %%
text = "\n".join(line.text for line in kernels)
defined = re.search(r"^\w+ = async_compile.*?^'''", text, re.M | re.S)
if defined:
    code(defined[0], title="generated code")
# %% [markdown]
# ## What does fusion save?
# The same function compiled three times: as usual, with the scheduler's fusion
# off (`max_fusion_size=1`), and without vector instructions (`cpp.simdlen=1`,
# which only matters on a CPU). Fewer loops mean that fewer tensors are written
# and read; how much that saves depends on the machine.
# %%


def smooth(x):
    y = torch.sigmoid(x * 0.5) - torch.tanh(x)
    e = (y - y.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


if has_hooks:
    large = torch.randn(1000, 1000)
    settings = {
        "as usual": {},
        "no fusion of loops": {"max_fusion_size": 1},
        "no vector instructions": {"cpp.simdlen": 1},
    }
    functions, rows = {}, []
    with fresh_cache(), torch.no_grad():
        for name, options in settings.items():
            # A copy each: compiled code belongs to a function's code.
            code_copy = smooth.__code__.replace(
                co_name=f"smooth_{len(rows)}"
            )
            copy = type(smooth)(code_copy, globals())
            compiled, before, after = compile_noting(copy, large, **options)
            functions[name] = lambda compiled=compiled: compiled(large)
            rows.append([name, len(before), len(after)])
        functions["eager"] = lambda: smooth(large)
        timings = compare_ms(functions, runs=9)
    table(["compiled", "loops before fusion", "after fusion"], rows)
    bars("One call on 1000 x 1000 numbers", timings.ms)
    for name in list(functions)[1:]:
        show(f"{name}: {timings.differs(name)} as usual, here.")
# %% [markdown]
# ## "Inductor turns a model into one kernel"
# Some operators are library calls: here that is sorting, convolution and matrix
# products. Loops before and after such a call can't be fused across it, and data
# may have to be copied into the layout that the library wants. Count:
# %%
if has_hooks:
    convolution = torch.nn.Conv2d(3, 8, 3)
    programs = {
        "elementwise chain": (
            lambda x: (x.sin() * 2 + 1).tanh().relu(),
            torch.randn(64, 64),
        ),
        "softmax": (lambda x: torch.softmax(x, -1), torch.randn(64, 64)),
        "convolution and relu": (
            lambda x: convolution(x).relu(),
            torch.randn(1, 3, 16, 16),
        ),
        "sort in the middle": (
            lambda x: x.sin().sort(-1).values.cos(),
            torch.randn(64, 64),
        ),
    }
    rows = []
    with fresh_cache():
        for name, (function, argument) in programs.items():
            _, _, after = compile_noting(function, argument)
            kinds = [what for _, what in after]
            calls = kinds.count("library call")
            rows.append([name, kinds.count("loop"), calls])
    table(["program", "generated loops", "library calls"], rows)
# %% [markdown]
# ## On your own program
# - `compilescope run train.py`, then `compilescope report`: your source, every
#   graph and the kernels, side by side; the line under the pointer lights up
#   with everything it became.
# - `compilescope run --ir train.py` also records Inductor's IR.
# - `TORCH_LOGS=output_code python train.py` prints the generated code,
#   `TORCH_LOGS=fusion` why two loops were fused or not.
# %% [markdown]
# ## Exercise
# `spread` can't become one kernel, because it sorts. Rewrite it so that Inductor
# fuses everything into *one* loop and calls no library, with the same results.
# %% tags=["exercise"]
import torch


def spread(x):
    ordered = x.sort(-1).values
    return (ordered[..., -1] - ordered[..., 0]) / x.std(-1)


# %% tags=["check"]
def check(answer):
    import torch
    from torch._inductor import config

    from compilescope.apps.learn.kit import fresh_cache

    def expected(x):
        ordered = x.sort(-1).values
        return (ordered[..., -1] - ordered[..., 0]) / x.std(-1)

    kinds = []

    def note(nodes):
        for node in nodes:
            if type(getattr(node, "node", None)).__name__ != "MultiOutput":
                kinds.append(type(node).__name__)
        return nodes

    torch.manual_seed(1)
    x = torch.randn(96, 200) * 3 + 1
    # In a single graph, so that no work is left to eager code beside it.
    compiled = torch.compile(answer.spread, fullgraph=True)
    with (
        fresh_cache(),
        torch.no_grad(),
        config.patch(_post_fusion_custom_pass=note),
    ):
        try:
            got = compiled(x)
        except torch._dynamo.exc.Unsupported as error:
            first = str(error).strip().splitlines()[0]
            return f"`spread` is not captured in one graph: {first}."
    if not isinstance(got, torch.Tensor) or got.shape != (96,):
        return f"`spread` returned {type(got).__name__}, not one number for each row."
    if not torch.allclose(got, expected(x), rtol=1e-4, atol=1e-5):
        return "The result is wrong."
    if not kinds:
        return (
            "Inductor compiled nothing: `spread` runs in eager mode only."
        )
    library = sum(kind.startswith("Extern") for kind in kinds)
    if library:
        return f"Library calls that Inductor still makes: {library}."
    if len(kinds) > 1:
        return f"Inductor still generates {len(kinds)} loops."


# %% tags=["solution"]
import torch


def spread(x):
    return (x.amax(-1) - x.amin(-1)) / x.std(-1)
