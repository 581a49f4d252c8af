import torch

rnn = torch.nn.GRU(4, 4)


@torch.compile(backend="eager")
def f(x):
    return rnn(x + 1)[0] * 2  # twice


f(torch.ones(2, 1, 4))
