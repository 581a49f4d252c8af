# ideal: join-as-it-grows
# A cache that grows in lists, and a flag that is compared from a size: once the list is kept
# joined, the size varies and the flag is a symbol, which attention refuses. Neither fix wins alone.
import torch
import torch.nn.functional as F


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(8, 24)

    def forward(self, x, keys, values):
        length = x.shape[1]
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        keys.append(k)
        values.append(v)
        k, v = torch.cat(keys, dim=1), torch.cat(values, dim=1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)


@torch.no_grad()
def generate(step, prompt, new):
    keys, values = [], []
    x = prompt
    for _ in range(new):
        x = step(x, keys, values)[:, -1:].tanh()
    return x.sum()


torch.manual_seed(0)
step = torch.compile(Layer(), backend="eager")
for length in (5, 7, 4):
    print(f"{generate(step, torch.randn(1, length, 8), 9):.4f}")
