# ideal: join-as-it-grows
"""A decoder with a key/value cache kept as lists of tensors on each attention layer."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.ks = []
        self.vs = []

    def reset(self):
        self.ks = []
        self.vs = []

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(B, T, self.heads, -1).transpose(1, 2)
        k = k.view(B, T, self.heads, -1).transpose(1, 2)
        v = v.view(B, T, self.heads, -1).transpose(1, 2)
        self.ks.append(k)
        self.vs.append(v)
        k = torch.cat(self.ks, dim=2)
        v = torch.cat(self.vs, dim=2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Decoder(nn.Module):
    def __init__(self, vocab=32, width=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList([Attention(width, 2) for _ in range(layers)])
        self.head = nn.Linear(width, vocab)

    def reset(self):
        for layer in self.layers:
            layer.reset()

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x[:, -1])


@torch.no_grad()
def generate(model, step, prompt, count):
    model.reset()
    told = []
    ids = torch.tensor([prompt])
    for _ in range(count):
        ids = step(ids).argmax(-1, keepdim=True)
        told.append(ids.item())
    return told


def main():
    torch.manual_seed(0)
    model = Decoder().eval()
    step = torch.compile(model, backend="eager")
    for prompt in ([1, 2, 3, 4], [5, 6, 7, 8]):
        print(prompt, generate(model, step, prompt, 6))


main()
