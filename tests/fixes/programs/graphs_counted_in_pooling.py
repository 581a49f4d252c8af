# ideal: capture-scalars
"""Nodes are averaged by graph; how many graphs there are is read where the caller does not say."""

import torch
from torch import nn


def mean_by_graph(x, graph, count=None):
    if count is None:
        count = int(graph.max()) + 1
    total = x.new_zeros(count, x.shape[1]).index_add(0, graph, x)
    nodes = x.new_zeros(count).index_add(0, graph, torch.ones_like(graph, dtype=x.dtype))
    return total / nodes.clamp(min=1).unsqueeze(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 2)

    def forward(self, x, graph):
        return self.last(mean_by_graph(self.first(x).relu(), graph))


torch.manual_seed(0)
net = torch.compile(Net(), backend="aot_eager")
for step in range(3):
    graph = torch.arange(4).repeat_interleave(3)
    print(step, net(torch.randn(12, 5), graph).sum().item())
