# ideal: class-at-top
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        class Output:
            """What forward gives back, piece by piece."""

            def __init__(self, hidden, pooled):
                self.hidden = hidden
                self.pooled = pooled

        hidden = x.tanh()
        out = Output(hidden, hidden.mean(0))
        return out.hidden - out.pooled


print(torch.compile(Model(), backend="eager")(torch.arange(6.0).reshape(2, 3)).tolist())
