# ideal: join-as-it-grows
"""Layers share a dict cache of lists that is passed to each call."""

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x, cache):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        cache["k"].append(k)
        cache["v"].append(v)
        k = torch.cat(cache["k"], dim=1)
        v = torch.cat(cache["v"], dim=1)
        x = x + F.scaled_dot_product_attention(q, k, v)
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self, vocab=24, width=16, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.head = nn.Linear(width, vocab, bias=False)

    def new_cache(self):
        return [{"k": [], "v": []} for _ in self.layers]

    def forward(self, ids, caches):
        x = self.embed(ids)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return self.head(x[:, -1])


@torch.no_grad()
def sample(model, step, start, length):
    caches = model.new_cache()
    ids = torch.tensor([[start]])
    out = []
    for _ in range(length):
        logits = step(ids, caches)
        ids = logits.argmax(-1, keepdim=True)
        out.append(ids.item())
    return out


if __name__ == "__main__":
    torch.manual_seed(1)
    model = Model().eval()
    step = torch.compile(model, backend="eager")
    for start in (3, 7):
        print(start, sample(model, step, start, 7))
