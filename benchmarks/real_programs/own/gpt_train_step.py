"""Character-level GPT on a synthetic corpus: one step function does everything."""

import argparse
import logging
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
logger = logging.getLogger("gpt")

CHARS = "abcdefghijklmnopqrstuvwxyz .,\n"


def make_corpus(length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    words = ["the", "model", "reads", "a", "line", "and", "then", "writes", "another", "one"]
    text = ""
    while len(text) < length:
        pick = torch.randint(len(words), (6,), generator=generator).tolist()
        text += " ".join(words[i] for i in pick) + ".\n"
    table = {c: i for i, c in enumerate(CHARS)}
    return torch.tensor([table[c] for c in text[:length]])


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(c, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(att.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocab, width=32, heads=2, layers=1, block_size=32, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.tok = nn.Embedding(vocab, width)
        self.pos = nn.Embedding(block_size, width)
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1], device=idx.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def get_batch(data, batch_size, block_size, generator):
    starts = torch.randint(len(data) - block_size - 1, (batch_size,), generator=generator).tolist()
    x = torch.stack([data[i : i + block_size] for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in starts])
    return x, y


def lr_at(step, args):
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    ratio = (step - args.warmup) / max(1, args.steps - args.warmup)
    return 0.1 * args.lr + 0.45 * args.lr * (1 + math.cos(math.pi * ratio))


@torch.compile
def train_step(model, optimizer, x, y, history):
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    loss.backward()
    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    accuracy = (logits.argmax(-1) == y).float().mean()
    history["loss"].append(loss.item())
    history["accuracy"].append(accuracy.item())
    return loss.detach(), grad_norm


@torch.no_grad()
def evaluate(model, data, args, batches=4):
    model.eval()
    generator = torch.Generator().manual_seed(99)
    total = 0.0
    for _ in range(batches):
        x, y = get_batch(data, args.batch_size, model.block_size, generator)
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    model.train()
    return total / batches


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--eval-interval", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(1337)
    data = make_corpus(6000)
    train_data, val_data = data[:5000], data[5000:]
    model = GPT(len(CHARS))
    logger.info("parameters: %d", sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    generator = torch.Generator().manual_seed(0)
    history = {"loss": [], "accuracy": []}
    best = float("inf")

    with tempfile.TemporaryDirectory() as folder:
        for step in range(args.steps):
            for group in optimizer.param_groups:
                group["lr"] = lr_at(step, args)
            x, y = get_batch(train_data, args.batch_size, model.block_size, generator)
            loss, grad_norm = train_step(model, optimizer, x, y, history)
            if (step + 1) % args.eval_interval == 0:
                val = evaluate(model, val_data, args)
                logger.info("step %d train %.3f val %.3f", step + 1, loss, val)
                logger.info("  grad norm %.2f accuracy %.2f", grad_norm, history["accuracy"][-1])
                if val < best:
                    best = val
                    path = os.path.join(folder, "best.pt")
                    torch.save({"model": model.state_dict(), "step": step + 1}, path)
        state = torch.load(os.path.join(folder, "best.pt"))
        model.load_state_dict(state["model"])
    print(f"best val {best:.3f} at step {state['step']}, {len(history['loss'])} losses kept")


if __name__ == "__main__":
    main()
