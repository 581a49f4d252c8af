import torch
import torch.nn.functional as F

def attend(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=q.size(2) > 1)

compiled = torch.compile(attend, backend="eager", dynamic=True)
print(compiled(torch.ones(1, 2, 5, 8)).shape)
