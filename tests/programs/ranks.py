"""For torchrun: every rank breaks at one line, and rank 1 at another as well."""

import os

import torch


@torch.compile(backend="eager")
def shared(x):
    torch._dynamo.graph_break()
    return x + 1


@torch.compile(backend="eager")
def only_one(x):
    torch._dynamo.graph_break()
    return x * 2


shared(torch.ones(2))
if os.environ["RANK"] == "1":
    only_one(torch.ones(2))
