import torch
import torch.nn.functional as F

@torch.compile(backend="eager", dynamic=True)
def attend(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=True if q.size(2) > 1 else False)

print(attend(torch.ones(1, 2, 5, 8)).shape)
