import functools

import torch


class Table(torch.nn.Module):
    @functools.cached_property
    def rows(self):
        return torch.arange(3.0)

    def forward(self, x):
        return x + self.rows


table = Table()
table.rows  # compute it once, before compiling
run = torch.compile(table, backend="eager")
run(torch.ones(3))
