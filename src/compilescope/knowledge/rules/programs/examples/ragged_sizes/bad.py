import torch
from torch.nn.utils.rnn import pad_sequence

embed = torch.nn.EmbeddingBag(16, 4)
encode = torch.compile(embed, backend="eager", dynamic=False)


def batch(lengths):
    return pad_sequence([torch.ones(each, dtype=torch.long) for each in lengths], batch_first=True)


for lengths in ([3, 5], [4, 7], [2, 9], [6, 4]):
    print(tuple(encode(batch(lengths)).shape))
