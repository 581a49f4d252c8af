import torch
import torch.nn.functional as F

def attend(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=True if q.size(2) > 1 else False)

compiled = torch.compile(attend, backend="eager", dynamic=True)
print(compiled(torch.ones(1, 2, 5, 8)).shape)
