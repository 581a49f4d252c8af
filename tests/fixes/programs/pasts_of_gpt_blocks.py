# ideal: join-as-it-grows
"""GPT with past lists that are made by forward and returned; decode loop with resets."""

import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head = n_head

    def forward(self, x, past):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        keys, values = past
        keys.append(k)
        values.append(v)
        k, v = torch.cat(keys, dim=2), torch.cat(values, dim=2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)), past


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 2 * n_embd), nn.GELU(), nn.Linear(2 * n_embd, n_embd)
        )

    def forward(self, x, past):
        y, past = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), past


class GPT(nn.Module):
    def __init__(self, vocab=32, n_embd=16, n_head=2, n_layer=2):
        super().__init__()
        self.wte = nn.Embedding(vocab, n_embd)
        self.h = nn.ModuleList([Block(n_embd, n_head) for _ in range(n_layer)])
        self.head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, pasts):
        x = self.wte(idx)
        for i, block in enumerate(self.h):
            x, _ = block(x, pasts[i])
        return self.head(x[:, -1, :])


@torch.no_grad()
def generate(model, n_layer, idx, steps, temperature):
    pasts = [([], []) for _ in range(n_layer)]
    out = idx.tolist()[0]
    for _ in range(steps):
        logits = model(idx, pasts) / temperature
        probs = torch.softmax(logits, dim=-1)
        idx = torch.argmax(probs, dim=-1, keepdim=True)
        out.append(int(idx))
    return out


def main():
    torch.manual_seed(0)
    gpt = GPT().eval()
    model = torch.compile(gpt, backend="eager")
    config = {"temperature": 0.8}
    for name, value in config.items():
        print(name, value)
    for prompt in ([[1, 2, 3, 4]], [[5, 6]]):
        print(generate(model, 2, torch.tensor(prompt), 7, config["temperature"]))


if __name__ == "__main__":
    main()
