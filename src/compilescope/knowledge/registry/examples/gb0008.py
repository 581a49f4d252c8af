"""The scheduler of a learning rate is stepped: torch's own code that Dynamo does not trace."""

import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)


def f(x):
    y = x * 2
    scheduler.step()  # breaks here
    return y + 1


def fixed(x):
    return x * 2 + 1


def inputs():
    return (torch.ones(3),)
