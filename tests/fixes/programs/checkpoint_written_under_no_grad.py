# ideal: outside-of-compiled
"""A forward under no_grad that writes what it computed."""

import io

import torch


class Recorder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.sink = io.BytesIO()

    @torch.no_grad()
    def forward(self, x, *, keep: bool = True):
        hidden = self.layer(x)
        out = hidden.softmax(-1)
        torch.save(out, self.sink)
        return out


torch.manual_seed(0)
recorder = Recorder()
run = torch.compile(recorder, backend="eager")
print([round(v, 4) for v in run(torch.ones(2)).tolist()], recorder.sink.tell() > 0)
