#: note: Python 3.12 has no lock there.
import functools

import torch


class Table(torch.nn.Module):
    @functools.cached_property
    def rows(self):
        return torch.arange(3.0)

    def forward(self, x):
        return x + self.rows


table = Table()
run = torch.compile(table, backend="eager")
run(torch.ones(3))
