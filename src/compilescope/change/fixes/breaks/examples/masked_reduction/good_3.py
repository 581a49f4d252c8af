import torch


def f(x):
    mask = ~torch.isnan(x)
    # The spread of the good ones.
    spread = torch.where(mask, torch.sqrt(torch.where(mask, x, 1)), 0).sum() / mask.sum()
    return (x - (torch.where(mask, x, 0).sum() / mask.sum())) / spread


torch.compile(f, backend="eager")(torch.ones(3))
