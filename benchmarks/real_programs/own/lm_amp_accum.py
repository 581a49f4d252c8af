"""Character language model, mixed precision and gradient accumulation.

    python lm_amp_accum.py --updates 12 --accumulate 4
"""

import argparse
import math
import pathlib
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = "the quick brown fox jumps over the lazy dog. " * 200


class Block(nn.Module):
    def __init__(self, dim, heads, drop):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.Dropout(drop))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln2(x))


class CharLM(nn.Module):
    def __init__(self, vocab, dim=32, depth=2, heads=4, block=32, drop=0.1):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(block, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, drop) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids, targets=None):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Trainer:
    def __init__(self, model, args):
        self.model = model
        self.args = args
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.scaler = torch.amp.GradScaler("cpu", enabled=args.scaler)
        self.micro_step = torch.compile(self._micro_step, backend=args.backend)
        self.history = []

    def _micro_step(self, ids, targets):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            _, loss = self.model(ids, targets)
            loss = loss / self.args.accumulate
        self.scaler.scale(loss).backward()
        return loss.item() * self.args.accumulate

    def update(self, batches):
        total = 0.0
        for ids, targets in batches:
            total += self.micro_step(ids, targets)
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.history.append(total / len(batches))
        return self.history[-1]

    @torch.no_grad()
    def evaluate(self, batches):
        self.model.eval()
        losses = [self.model(x, y)[1].item() for x, y in batches]
        self.model.train()
        return sum(losses) / len(losses)

    def save(self, path, step):
        torch.save({"model": self.model.state_dict(), "optim": self.optimizer.state_dict(), "step": step}, path)


def get_batches(data, n, size, block, gen):
    out = []
    for _ in range(n):
        at = torch.randint(len(data) - block - 1, (size,), generator=gen)
        out.append((torch.stack([data[i : i + block] for i in at]), torch.stack([data[i + 1 : i + 1 + block] for i in at])))
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument("--scaler", action="store_true", default=True)
    args = parser.parse_args()
    torch.manual_seed(1)
    chars = sorted(set(TEXT))
    data = torch.tensor([chars.index(c) for c in TEXT])
    gen = torch.Generator().manual_seed(2)
    trainer = Trainer(CharLM(len(chars)), args)
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        for step in range(args.updates):
            loss = trainer.update(get_batches(data, args.accumulate, 8, 32, gen))
            if step % 5 == 0:
                val = trainer.evaluate(get_batches(data, 2, 8, 32, gen))
                print(f"step {step} loss {loss:.3f} val {val:.3f} ppl {math.exp(val):.1f}")
                trainer.save(pathlib.Path(folder) / "last.pt", step)
    print(f"done, final loss {trainer.history[-1]:.3f}")


if __name__ == "__main__":
    main()
