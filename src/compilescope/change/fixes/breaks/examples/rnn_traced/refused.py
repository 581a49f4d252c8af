#: because: packed sequences
import torch
from torch.nn.utils.rnn import pack_padded_sequence

rnn = torch.nn.GRU(4, 4)


@torch.compile(backend="eager")
def f(x):
    return rnn(pack_padded_sequence(x, [3, 2]))[1]


f(torch.ones(3, 2, 4))
