"""A module with a backward hook is called; Dynamo needs compiled autograd for it."""

import torch

layer = torch.nn.Linear(3, 3)
layer.register_full_backward_hook(lambda module, grads_in, grads_out: None)


def f(x):
    return layer(x)  # breaks here


def inputs():
    return (torch.ones(3, requires_grad=True),)
