"""Small GPT trained on arithmetic strings, evaluated after every epoch."""

import argparse
import math
import pathlib
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

VOCAB = "0123456789+=;"
STOI = {c: i for i, c in enumerate(VOCAB)}


class SumDataset(Dataset):
    """Strings such as 12+07=019; repeated to fill the context."""

    def __init__(self, size, context, seed):
        generator = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(size):
            text = ""
            while len(text) <= context:
                a, b = torch.randint(100, (2,), generator=generator).tolist()
                text += f"{a:02d}+{b:02d}={a + b:03d};"
            self.rows.append(torch.tensor([STOI[c] for c in text[: context + 1]]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return row[:-1], row[1:]


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0
        )
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, dropout)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class GPT(nn.Module):
    def __init__(self, context, width=32, heads=4, depth=1, dropout=0.1):
        super().__init__()
        self.tok = nn.Embedding(len(VOCAB), width)
        self.pos = nn.Parameter(torch.zeros(1, context, width))
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(VOCAB), bias=False)

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    losses, hits, count = 0.0, 0, 0
    for x, y in loader:
        logits, loss = model(x, y)
        losses += loss.item() * len(x)
        hits += (logits.argmax(-1) == y).sum().item()
        count += y.numel()
    model.train()
    return losses / len(loader.dataset), hits / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--context", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args()

    torch.manual_seed(7)
    train = DataLoader(
        SumDataset(192, args.context, seed=1), args.batch_size, shuffle=True, drop_last=True
    )
    valid = DataLoader(SumDataset(64, args.context, seed=2), args.batch_size, drop_last=True)

    net = GPT(args.context)
    model = torch.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.05)
    total = args.epochs * len(train)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, (s + 1) / 8) * 0.5 * (1 + math.cos(math.pi * s / total))
    )

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = pathlib.Path(folder) / "gpt.pt"
        best = math.inf
        for epoch in range(args.epochs):
            running = 0.0
            for step, (x, y) in enumerate(train):
                optimizer.zero_grad(set_to_none=True)
                _, loss = model(x, y)
                loss.backward()
                norm = nn.utils.clip_grad_norm_(net.parameters(), args.clip)
                optimizer.step()
                scheduler.step()
                running += loss.item()
                if step % 6 == 0:
                    print(f"epoch {epoch} step {step:3d} loss {loss.item():.3f} norm {norm:.2f}")
            val_loss, val_acc = evaluate(model, valid)
            print(
                f"epoch {epoch} train {running / len(train):.3f} val {val_loss:.3f} {val_acc:.3f}"
            )
            if val_loss < best:
                best = val_loss
                torch.save(
                    {"model": net.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint
                )
        net.load_state_dict(torch.load(checkpoint)["model"])
        print(f"restored {best:.3f}: {evaluate(model, valid)[0]:.3f}")


if __name__ == "__main__":
    main()
