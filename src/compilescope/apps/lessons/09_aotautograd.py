# %% [markdown]
# # AOTAutograd
# Where does the backward graph come from, and what does training keep for it?
#
# Dynamo captures the forward pass only. In eager mode, autograd records the
# backward pass while the forward pass runs. A compiler wants to see both
# *before* anything runs. AOTAutograd ("ahead of time") traces forward and
# backward together into one *joint graph*, and then cuts it in two.
# %%
import logging

import torch

from compilescope.apps.learn.kit import (
    bars,
    draw_graph,
    missing,
    peak_bytes,
    show,
    table,
)

# The cut reports details of its search as warnings.
logging.getLogger("torch._functorch").setLevel(logging.ERROR)
torch.manual_seed(0)
try:
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import (
        default_partition,
        min_cut_rematerialization_partition,
    )

    has_aot = True
except ImportError as error:
    has_aot = False
    missing("AOTAutograd's graphs", str(error))
# %% [markdown]
# ## Watch it work
# `aot_autograd` builds a backend from functions that you give it: one gets the
# joint graph and cuts it, one compiles the forward graph, one the backward
# graph. These only keep what they get, and note the order of events.
# %%
seen, order = {}, []


def keep(stage):
    def compiler(gm, example_inputs):
        seen[stage] = gm
        order.append(f"{stage} graph compiled")
        return make_boxed_func(gm.forward)

    return compiler


def watching(cut, **more):
    """A backend that keeps all three graphs; `cut` divides the joint one."""

    def keep_joint(joint, inputs, **options):
        seen["joint"] = joint
        order.append("joint graph traced and cut")
        return cut(joint, inputs, **options)

    return aot_autograd(
        fw_compiler=keep("forward"),
        bw_compiler=keep("backward"),
        partition_fn=keep_joint,
        **more,
    )


def wave(x):
    return torch.exp(torch.sin(x))


x = torch.randn(8, requires_grad=True)
if has_aot:
    order.append("you call the compiled function")
    y = torch.compile(wave, backend=watching(default_partition))(x)
    order.append("you call backward()")
    y.sum().backward()
    for number, event in enumerate(order, 1):
        print(f"{number}. {event}")
# %% [markdown]
# ## The joint graph
# Its inputs are called `primals` (the inputs of the forward pass) and
# `tangents` (the gradients of its results). Its outputs are the result *and*
# the gradient of every input. Find `cos`: it is the derivative of `sin`, and
# your code doesn't contain it. (`detach` returns its input; it copies nothing.)
# %%
if has_aot:
    draw_graph(seen["joint"], "joint graph of exp(sin(x))")
# %% [markdown]
# ## The cut
# The forward graph returns the result and whatever the backward graph needs
# from it. The backward graph takes those values and the `tangents`.
# %%
if has_aot:
    draw_graph(seen["forward"], "forward graph")
    draw_graph(seen["backward"], "backward graph")
# %% [markdown]
# ## In-place changes disappear
# The graphs are *functional*: their operators make new values. Where your code
# changes an input, the graph returns the new value as an additional result,
# which is copied into your tensor afterwards. (Where it can, Inductor makes that
# copy part of the graph.)
# %%


def scale_in_place(x):
    x.mul_(2)
    return x.sin()


if has_aot:
    torch.compiler.reset()
    ones = torch.ones(8)
    with torch.no_grad():
        torch.compile(scale_in_place, backend=watching(default_partition))(
            ones
        )
    print("the input was 1 and is now", ones[0].item())
    draw_graph(seen["forward"], "x.mul_(2); x.sin()")
# %% [markdown]
# ## What is saved for backward
# What a forward pass saves stays in memory until the backward pass has used it.
# Inputs and weights are in memory anyway, so what counts is the *rest*. Here is a
# block with an activation function written by hand, and what autograd saves for
# it in eager mode.
# %%


def by_hand(x):
    return 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.045 * x * x * x)))


class Block(torch.nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.activation = activation
        self.norm = torch.nn.LayerNorm(256)
        self.up = torch.nn.Linear(256, 1024)
        self.down = torch.nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.down(self.activation(self.up(self.norm(x))))


block, batch = Block(by_hand), torch.randn(512, 256, requires_grad=True)
storages = {}


def note(tensor):
    storage = tensor.untyped_storage()
    storages[storage.data_ptr()] = storage
    return tensor


with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
    result = block(batch)
for tensor in (batch, *block.parameters()):
    storages.pop(tensor.untyped_storage().data_ptr(), None)
amounts = {"eager": sum(each.nbytes() for each in storages.values())}
# %% [markdown]
# There is more than one place to cut a joint graph. `default_partition` keeps
# every forward value that backward asks for. Inductor uses
# `min_cut_rematerialization_partition`: it looks for the cut with the fewest
# bytes, and lets backward compute cheap values again.
# %%


def saved(forward, backward):
    """The values that cross the cut, without inputs and views of inputs."""
    free = set()
    for node in forward.graph.nodes:
        is_view = getattr(node.target, "is_view", False)
        if node.op == "placeholder" or (is_view and node.args[0] in free):
            free.add(node)
    known = {node.name for node in free}
    return {
        node.name: node.meta["val"]
        for node in backward.graph.find_nodes(op="placeholder")
        if node.name not in known and not node.name.startswith("tangents")
    }


def saved_by(cut):
    from torch._inductor.decomposition import select_decomp_table

    torch.compiler.reset()
    backend = watching(cut, decompositions=select_decomp_table())
    torch.compile(block, backend=backend)(batch).sum().backward()
    return saved(seen["forward"], seen["backward"])


def total(values):
    return sum(value.numel() * value.element_size() for value in values)


if has_aot:
    amounts["default partition"] = total(
        saved_by(default_partition).values()
    )
    values = saved_by(min_cut_rematerialization_partition)
    amounts["min cut"] = total(values.values())
    table(
        ["saved value", "shape", "KiB"],
        [[k, tuple(v.shape), total([v]) / 1024] for k, v in values.items()],
        title="What the min cut saves",
    )
bars("Saved for backward, beyond inputs and weights", amounts, unit="bytes")
# %% [markdown]
# ## Memory for time
# `activation_memory_budget` sets how much the cut may save, from 1 (the cut
# above) down to 0 (inputs only). What is not saved is computed again in the
# backward pass: watch the number of its operators. This is activation
# checkpointing, done by the compiler.
# %%
try:
    from torch._functorch import config as aot_config

    rows = []
    for budget in (1.0, 0.5, 0.25, 0.0) if has_aot else ():
        with aot_config.patch(activation_memory_budget=budget):
            values = saved_by(min_cut_rematerialization_partition)
        nodes = seen["backward"].graph.nodes
        operators = sum(node.op == "call_function" for node in nodes)
        rows.append([budget, total(values.values()) / 1024, operators])
    table(["budget", "KiB saved", "operators in backward"], rows)
except (ImportError, AttributeError) as error:
    missing("`activation_memory_budget`", str(error))
# %% [markdown]
# ## "Compiling always saves training memory"
# Measure the peak of one training step: everything that is in tensors at the
# same moment, gradients included. `F.gelu` is one operator with a backward of
# its own, so that eager mode saves little for it, too. The sentences below are
# chosen by the results.
# %%


def step(model, function):
    model.zero_grad(set_to_none=True)
    batch.grad = None
    function(batch).sum().backward()


def peak_of_step(model, function):
    step(model, function)  # The first call may compile.
    model.zero_grad(set_to_none=True)
    batch.grad = None
    return peak_bytes(step, model, function)


for name, activation in (
    ("by_hand", by_hand),
    ("F.gelu", torch.nn.functional.gelu),
):
    torch.compiler.reset()
    model = Block(activation)
    peaks = {"eager": peak_of_step(model, model)}
    try:
        peaks["inductor"] = peak_of_step(model, torch.compile(model))
    except Exception as error:
        missing(
            "Inductor",
            f"{type(error).__name__}: {str(error).splitlines()[0]}",
        )
        break
    bars(f"Peak of one training step with {name}", peaks, unit="bytes")
    share = peaks["inductor"] / peaks["eager"]
    word = "more" if share > 1.02 else "less" if share < 0.98 else "as much"
    show(f"Compiled, `{name}` needs {word} ({share:.2f} of eager mode).")
# %% [markdown]
# ## On your own program
# - `compilescope run train.py`, then `compilescope report`: for each graph the
#   joint, forward and backward graphs, next to the source lines they come from.
# - `compilescope diff model.py:build --train` checks the gradients of a
#   compiled model against eager mode.
# - `TORCH_LOGS=aot_graphs,aot_joint_graph python train.py` prints the graphs.
# %% [markdown]
# ## Exercise
# Write `extra_bytes(forward, backward)`. It gets the two graphs that a joint
# graph was cut into, and returns how many bytes the forward graph saves for the
# backward graph. Inputs of the forward graph don't count: they are in memory
# anyway. The starter counts too much.
# %% tags=["exercise"]
import torch


def extra_bytes(forward, backward):
    nodes = backward.graph.find_nodes(op="placeholder")
    values = [node.meta["val"] for node in nodes]
    return sum(value.numel() * value.element_size() for value in values)


# %% tags=["check"]
def check(answer):
    """Functions and cuts that save known values, compiled here and now."""
    import torch
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import (
        default_partition,
        min_cut_rematerialization_partition,
    )

    def graphs_of(fn, cut):
        found = []

        def keep(gm, example_inputs):
            found.append(gm)
            return make_boxed_func(gm.forward)

        torch.compiler.reset()
        backend = aot_autograd(
            fw_compiler=keep, bw_compiler=keep, partition_fn=cut
        )
        x = torch.linspace(-1, 1, 300, requires_grad=True)
        torch.compile(fn, backend=backend)(x).sum().backward()
        return found

    keeps, again = default_partition, min_cut_rematerialization_partition
    # The function, the cut, and how many bytes it saves for each element.
    cases = [
        (lambda x: x.sin(), keeps, 0, "x.sin()", "saves `x`, an input"),
        (
            lambda x: x.sin().cos().sin(),
            keeps,
            2 * 4,
            "x.sin().cos().sin()",
            "saves two intermediate values and `x`",
        ),
        (
            lambda x: x.sin().cos().sin(),
            again,
            0,
            "x.sin().cos().sin()",
            "computes everything again from `x`",
        ),
        (
            lambda x: x.sin() * x.cos(),
            keeps,
            2 * 4,
            "x.sin() * x.cos()",
            "saves both factors and `x`",
        ),
        (
            lambda x: x.double().sin().cos(),
            keeps,
            2 * 8,
            "x.double().sin().cos()",
            "saves two values in float64",
        ),
    ]
    for fn, cut, width, text, why in cases:
        said, right = answer.extra_bytes(*graphs_of(fn, cut)), 300 * width
        if said != right:
            where = f"For `{text}` with `{cut.__name__}`"
            return f"{where} you said {said!r}; right is {right}: it {why}."


# %% tags=["solution"]
import torch


def extra_bytes(forward, backward):
    inputs = {
        node.name for node in forward.graph.find_nodes(op="placeholder")
    }
    values = [
        node.meta["val"]
        for node in backward.graph.find_nodes(op="placeholder")
        if node.name not in inputs and not node.name.startswith("tangents")
    ]
    return sum(value.numel() * value.element_size() for value in values)
