"""Toy translation: reverse the digits. Transformer encoder, cached decoder, beam search."""
import dataclasses
import random

import torch
from torch import nn

PAD, BOS, EOS = 0, 1, 2
VOCAB = 13


@dataclasses.dataclass
class Hypotheses:
    tokens: torch.Tensor
    scores: torch.Tensor
    history: list


class DecoderLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d, h, batch_first=True)
        self.cross = nn.MultiheadAttention(d, h, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))
        self.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))

    def forward(self, x, memory, past=None, mask=None):
        seen = x if past is None else torch.cat([past, x], dim=1)
        y = self.n[0](x + self.self_attn(x, seen, seen, attn_mask=mask, need_weights=False)[0])
        y = self.n[1](y + self.cross(y, memory, memory, need_weights=False)[0])
        return self.n[2](y + self.ff(y)), seen


class Seq2Seq(nn.Module):
    def __init__(self, d=32, h=4, layers=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d)
        self.pos = nn.Parameter(torch.randn(64, d) * 0.1)
        self.enc = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d, h, 2 * d, batch_first=True, dropout=0.0), 1, enable_nested_tensor=False
        )
        self.dec = nn.ModuleList(DecoderLayer(d, h) for _ in range(layers))
        self.out = nn.Linear(d, VOCAB)

    def encode(self, src):
        return self.enc(self.emb(src) + self.pos[: src.shape[1]])

    def forward(self, src, tgt):
        memory = self.encode(src)
        x = self.emb(tgt) + self.pos[: tgt.shape[1]]
        mask = torch.triu(torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool), 1)
        for layer in self.dec:
            x, _ = layer(x, memory, mask=mask)
        return self.out(x)

    def step(self, token, memory, history):
        at = 0 if history is None else history[0].shape[1]
        x = self.emb(token) + self.pos[at : at + 1]
        new = []
        for i, layer in enumerate(self.dec):
            x, seen = layer(x, memory, None if history is None else history[i])
            new.append(seen)
        return self.out(x[:, -1]).log_softmax(-1), new


class BeamSearcher:
    def __init__(self, model, width=3, longest=10):
        self.model, self.width, self.longest = model, width, longest
        self.step = torch.compile(model.step, backend="eager")

    @torch.no_grad()
    def __call__(self, src):
        memory = self.model.encode(src[None])
        logp, history = self.step(torch.tensor([[BOS]]), memory, None)
        scores, first = logp[0].topk(self.width)
        memory = memory.expand(self.width, -1, -1).contiguous()
        beams = Hypotheses(first[:, None], scores, [h.expand(self.width, -1, -1).contiguous() for h in history])
        for _ in range(self.longest - 1):
            logp, history = self.step(beams.tokens[:, -1:], memory, beams.history)
            total = (beams.scores[:, None] + logp).flatten()
            scores, flat = total.topk(self.width)
            parent, token = flat // VOCAB, flat % VOCAB
            beams = Hypotheses(
                torch.cat([beams.tokens[parent], token[:, None]], 1), scores, [h[parent] for h in history]
            )
            if token[0].item() == EOS:
                break
        return beams.tokens[0].tolist()


def sample(n, length, rng):
    src = torch.tensor([[rng.randrange(3, VOCAB) for _ in range(length)] for _ in range(n)])
    tgt = torch.cat([torch.full((n, 1), BOS), src.flip(1), torch.full((n, 1), EOS)], 1)
    return src, tgt


if __name__ == "__main__":
    torch.manual_seed(0)
    rng = random.Random(0)
    model = Seq2Seq()
    opt = torch.optim.Adam(model.parameters(), 3e-3)
    for it in range(40):
        src, tgt = sample(16, 6, rng)
        logits = model(src, tgt[:, :-1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), tgt[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 20 == 0:
            print(f"it {it}: {loss.item():.3f}")
    model.eval()
    searcher = BeamSearcher(model)
    for length in (6, 5, 7, 4):
        src, tgt = sample(1, length, rng)
        print(src[0].tolist(), "->", searcher(src[0]))
