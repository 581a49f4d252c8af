"""Shows a compiler that fails on the backward graph only."""

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

#: graphs 1


def forward_compiler(gm, example_inputs):
    return make_boxed_func(gm.forward)


def backward_compiler(gm, example_inputs):
    raise ValueError("no backward kernel")


@torch.compile(backend=aot_autograd(fw_compiler=forward_compiler, bw_compiler=backward_compiler))  #: failure ValueError - -
def f(x):
    return x.sin()


y = f(torch.ones(3, requires_grad=True))
try:
    y.sum().backward()
except ValueError:
    pass
else:
    raise SystemExit("no error")
