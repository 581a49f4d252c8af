import torch as th


class Norm(th.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", th.zeros(3))

    def forward(self, x):
        if self.training:
            taken = ~th.isfinite(x).all()
            x = th.where(taken, th.nan_to_num(x), x)
            self.seen.copy_(th.where(taken, self.seen.mul(0.5).add(x), self.seen))
        return x + self.seen


th.compile(Norm(), backend="eager")(th.ones(3))
