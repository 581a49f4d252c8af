#: note: A mask that broadcasts picks a value for every row that it stands for.
import torch


def f(d, rows):
    return torch.masked_select(d, rows).mean()


torch.compile(f, backend="eager")(torch.ones(4, 5), torch.tensor([[True], [False], [True], [True]]))
