# ideal: contiguous-argument
import torch


@torch.compile(backend="eager")
def attention(query, key):
    scores = query @ key.transpose(-1, -2)
    return scores.softmax(-1)


torch.manual_seed(0)
heads = torch.randn(2, 4, 8)
key = torch.randn(2, 4, 8)
print(attention(heads, key).sum())
turned = torch.randn(2, 8, 4)
print(attention(turned.mT, key)[0, 0])
print(attention(heads * 2, key)[1, 0])
