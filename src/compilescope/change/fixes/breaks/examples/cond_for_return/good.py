import torch


class Skip(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        # too small
        def when_true(x):
            return x / 2

        def when_false(x):
            x = self.layer(x)
            return x.relu()

        return torch.cond(x.abs().max() < 0.1, when_true, when_false, (x,))


net = Skip().requires_grad_(False)
torch.compile(net, backend="eager")(torch.ones(3))
