# ideal: with-for-exit-stack
from contextlib import ExitStack

import torch


def evaluate(layer, x):
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        y = layer(x)
    return y.float().sum()


torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
out = torch.compile(evaluate, backend="eager")(layer, torch.ones(2, 4))
print(round(out.item(), 2), out.requires_grad)
