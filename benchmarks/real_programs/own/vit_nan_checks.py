"""Small ViT on synthetic textures, written to stop early when activations go bad."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

IMAGE, PATCH, CLASSES = 16, 4, 3


def textures(count, seed):
    """Vertical stripes, horizontal stripes, checkerboard."""
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(CLASSES, (count,), generator=g)
    axis = torch.arange(IMAGE)
    stripes = ((axis // 2) % 2).float()
    patterns = torch.stack(
        [
            stripes[None, :].expand(IMAGE, IMAGE),
            stripes[:, None].expand(IMAGE, IMAGE),
            (stripes[:, None] + stripes[None, :]) % 2,
        ]
    )
    images = patterns[label] + 0.8 * torch.randn(count, IMAGE, IMAGE, generator=g)
    return TensorDataset(images[:, None], label)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        if torch.isnan(x).any():
            raise FloatingPointError("nan in encoder layer")
        return x


class ViT(nn.Module):
    def __init__(self, width=24, heads=2, depth=2):
        super().__init__()
        self.patch = nn.Conv2d(1, width, PATCH, stride=PATCH)
        tokens = (IMAGE // PATCH) ** 2
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.pos = nn.Parameter(0.02 * torch.randn(1, tokens + 1, width))
        self.layers = nn.ModuleList([EncoderLayer(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = sum((model(x).argmax(-1) == y).sum().item() for x, y in loader)
    model.train()
    return hits / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(9)
    train = DataLoader(textures(256, seed=1), 32, shuffle=True)
    test = DataLoader(textures(64, seed=2), 32)
    net = ViT()
    model = torch.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.05)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(args.epochs):
            total = 0.0
            for step, (images, label) in enumerate(train):
                loss = F.cross_entropy(model(images), label)
                value = loss.item()
                if value != value or value > 50:
                    bad += 1
                    print(f"bad loss {value} at epoch {epoch} step {step}, skipping")
                    continue
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                total += value
            score = evaluate(model, test)
            print(f"epoch {epoch}: loss {total / len(train):.3f} accuracy {score:.3f}")
            torch.save(net.state_dict(), os.path.join(folder, f"vit_{epoch}.pt"))
        print(f"{len(os.listdir(folder))} checkpoints, {bad} bad steps")


if __name__ == "__main__":
    main()
