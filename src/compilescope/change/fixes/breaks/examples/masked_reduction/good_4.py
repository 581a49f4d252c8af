import torch


def f(d, rows):
    return torch.where(rows, d, 0).sum() / torch.broadcast_tensors(rows, d)[0].sum()


torch.compile(f, backend="eager")(torch.ones(4, 5), torch.tensor([[True], [False], [True], [True]]))
