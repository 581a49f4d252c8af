# ideal: mark-dynamic
"""A decoder whose cache, two tensors for each layer, is empty at the prompt and grows by joining."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, past):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if past is not None:
            k = torch.cat([past[0], k], dim=1)
            v = torch.cat([past[1], v], dim=1)
        return x + F.scaled_dot_product_attention(q, k, v), (k, v)


class Decoder(nn.Module):
    def __init__(self, layers=2, vocabulary=16, width=8):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([Attention(width) for _ in range(layers)])

    def forward(self, ids, cache):
        x = self.embed(ids)
        presents = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, cache[i] if cache else None)
            presents.append(present)
        return x[:, -1] @ self.embed.weight.T, presents


@torch.inference_mode()
def generate(model, prompt, count):
    ids, cache, told = torch.tensor([prompt]), [], []
    for _ in range(count):
        logits, cache = model(ids, cache)
        ids = logits.argmax(-1, keepdim=True)
        told.append(ids.item())
    return told


def main():
    torch.manual_seed(0)
    model = torch.compile(Decoder().eval(), backend="aot_eager", dynamic=False)
    for prompt in ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]):
        print(prompt, generate(model, prompt, 5))


main()
