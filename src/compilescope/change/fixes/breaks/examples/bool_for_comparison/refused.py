#: because: no operator is given a comparison
import torch
import torch.nn.functional as F


@torch.compile(backend="eager", dynamic=True)
def attend(q, k, v):
    length = q.shape[1]
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True and length > 1)
    return y * 2


for length in (8, 9, 10):
    x = torch.ones(2, length, 4)
    print(attend(x, x, x).sum())
