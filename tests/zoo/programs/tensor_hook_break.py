"""Shows a hook on an input tensor that prints when the backward pass inside the function runs."""

import torch

#: graphs 2


def show(grad):
    print("grad")  #: break "print(" Failed to trace builtin operator #: category logging
    return grad


@torch.compile(backend="eager")
def f(x):
    y = (x * 2).sum()
    y.backward()  #: break "y.backward()" Unsupported Tensor.backward() call #: category autograd
    return x * 3


x = torch.ones(3, requires_grad=True)
x.register_hook(show)
f(x)
