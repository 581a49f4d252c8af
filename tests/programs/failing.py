"""Every way in which compiling reaches the user as an error or a warning; ends in one, uncaught."""

import traceback

import torch
import torch._dynamo


def show_error(function, *args):
    try:
        function(*args)
    except Exception:
        traceback.print_exc()
    else:
        print(function, "did not raise")


@torch.compile(backend="eager", fullgraph=True)
def whole(x):
    x = x + 1
    print("in the way")
    return x


def broken(gm, example_inputs):
    raise RuntimeError("the backend gives up")


@torch.compile(backend=broken)
def unlucky(x):
    return x * 2


@torch.compile(backend="eager")
def refused(x, flag):
    return x + 1 if flag else x - 1


@torch.compile(backend="eager")
def storm(x, n):
    return x + n


@torch.compile(backend="eager")
def branching(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def in_backward(gm, example_inputs):
    from torch._dynamo.backends.common import aot_autograd

    def raising(backward, inputs):
        raise RuntimeError("no backward today")

    return aot_autograd(fw_compiler=lambda gm, _: gm.forward, bw_compiler=raising)(
        gm, example_inputs
    )


@torch.compile(backend=in_backward)
def half(x):
    return torch.sin(x) * x


@torch.compile(backend="eager")
def misshapen(x, y):
    return x.view(7) + y


x = torch.ones(3)
show_error(whole, x)
show_error(unlucky, x)
with torch._dynamo.config.patch(error_on_recompile=True):
    show_error(refused, x, True)
    show_error(refused, x, False)
torch._dynamo.config.recompile_limit = 2
# Floats are specialised here, so each value is one more compilation, until there are too many.
torch._dynamo.config.specialize_float = True
for n in range(4):
    storm(x, n + 0.5)
branching(x)
show_error(lambda: half(x.clone().requires_grad_()).sum().backward())
misshapen(torch.ones(5), torch.ones(4))
