"""PyTorch does not trace `nn.LSTM`, `nn.GRU` and `nn.RNN` by default."""

import torch

lstm = torch.nn.LSTM(4, 4)


def f(x):
    out, _ = lstm(x)  # breaks here
    return out + 1


FIXED_CONFIG = {"allow_rnn": True}


def inputs():
    return (torch.ones(2, 1, 4),)
