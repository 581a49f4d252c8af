import torch


def f(x, parts, counts):
    spread = parts.tanh().repeat_interleave(counts, dim=0)
    joined = torch.cat([x, spread * 2], dim=1)
    return joined.relu()


torch.compile(f, backend="eager")(torch.ones(6, 4), torch.ones(3, 2), torch.tensor([1, 2, 3]))
