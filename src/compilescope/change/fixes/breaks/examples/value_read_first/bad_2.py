import torch


class Pooled(torch.nn.Module):
    def forward(self, x, weight):
        y = x.relu()
        if weight.sum() > 0:  # a row or a number
            return (y * weight).sum(0)
        return y.double().mean()


torch.compile(Pooled(), backend="eager")(torch.ones(2, 3), torch.ones(2, 1))
