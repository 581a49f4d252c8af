"""A small inference engine: static KV buffers, prefill and decode compiled by model.compile()."""
import time
from collections import deque
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Request:
    uid: int
    prompt: list
    max_new: int = 8
    output: list = field(default_factory=list)


class Attention(nn.Module):
    def __init__(self, d, h, slots, longest):
        super().__init__()
        self.h = h
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.register_buffer("kbuf", torch.zeros(slots, h, longest, d // h), persistent=False)
        self.register_buffer("vbuf", torch.zeros(slots, h, longest, d // h), persistent=False)

    def forward(self, x, at, mask):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4)
        self.kbuf.index_copy_(2, at, k)
        self.vbuf.index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, self.kbuf, self.vbuf, attn_mask=mask)
        return self.o(y.transpose(1, 2).reshape(B, T, C))


class Decoder(nn.Module):
    def __init__(self, vocab=64, d=32, h=4, layers=2, slots=1, longest=48):
        super().__init__()
        self.longest = longest
        self.emb, self.pos = nn.Embedding(vocab, d), nn.Embedding(longest, d)
        self.att = nn.ModuleList(Attention(d, h, slots, longest) for _ in range(layers))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.register_buffer("causal", torch.tril(torch.ones(longest, longest, dtype=torch.bool)), persistent=False)

    def forward(self, ids, at, last):
        mask = self.causal[at]
        x = self.emb(ids) + self.pos(at)
        for a, m in zip(self.att, self.mlp):
            x = x + a(self.norm(x), at, mask)
            x = x + m(self.norm(x))
        return self.norm(x.index_select(1, last)).squeeze(1) @ self.emb.weight.T


class Engine:
    PREFILL = 16

    def __init__(self, model):
        self.model = model.eval()
        self.queue, self.done = deque(), []
        self.model.compile(backend="aot_eager", fullgraph=True)

    def add(self, request):
        self.queue.append(request)

    @torch.inference_mode()
    def run_one(self, req):
        n = len(req.prompt)
        padded = torch.tensor([req.prompt + [0] * (self.PREFILL - n)])
        logits = self.model(padded, torch.arange(self.PREFILL), torch.tensor([n - 1]))
        for i in range(req.max_new):
            token = int(logits.argmax(-1))
            req.output.append(token)
            logits = self.model(torch.tensor([[token]]), torch.tensor([n + i]), torch.tensor([0]))

    def loop(self):
        while self.queue:
            req = self.queue.popleft()
            start = time.perf_counter()
            self.run_one(req)
            self.done.append((req.uid, len(req.output), time.perf_counter() - start))
        return self.done


def main():
    torch.manual_seed(0)
    engine = Engine(Decoder())
    g = torch.Generator().manual_seed(1)
    for uid in range(6):
        n = int(torch.randint(3, 14, (1,), generator=g))
        engine.add(Request(uid, torch.randint(1, 64, (n,), generator=g).tolist()))
    for uid, count, _ in engine.loop():
        print(f"request {uid}: {count} tokens")


if __name__ == "__main__":
    main()
