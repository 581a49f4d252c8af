# ideal: any
# trap: printed after the graph, the tensor shows numbers that it got later
"""Prints a tensor that is changed in place right after."""

import torch


def update(state, delta):
    print("before", state)
    state.add_(delta)
    print("after", state)
    return state * 2


run = torch.compile(update, backend="eager")
state = torch.zeros(2)
for _ in range(2):
    print(run(state, torch.ones(2)).tolist())
