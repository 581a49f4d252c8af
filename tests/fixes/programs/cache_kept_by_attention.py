# ideal: dynamic-automatic
"""The keys and values are kept by the layers, where no call can mark them, and grow by joining."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.reset()

    def reset(self):
        self.k_cache = self.v_cache = None

    def forward(self, x):
        length = x.shape[1]
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if self.k_cache is not None:
            k = torch.cat([self.k_cache, k], dim=1)
            v = torch.cat([self.v_cache, v], dim=1)
        self.k_cache, self.v_cache = k, v
        # What is True for the prompt needs its length as a number.
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=length > 1)


class Decoder(nn.Module):
    def __init__(self, vocabulary=16, width=8):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Attention(width) for _ in range(2))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return x[:, -1] @ self.embed.weight.T


@torch.no_grad()
def generate(model, step, prompt, count):
    for layer in model.layers:
        layer.reset()
    ids, told = torch.tensor([prompt]), []
    for _ in range(count):
        ids = step(ids).argmax(-1, keepdim=True)
        told.append(ids.item())
    return told


torch.manual_seed(0)
model = Decoder().eval()
step = torch.compile(model, backend="aot_eager", dynamic=False)
for prompt in ([1, 2, 3, 4], [5, 6, 7, 8]):
    print(prompt, generate(model, step, prompt, 5))
