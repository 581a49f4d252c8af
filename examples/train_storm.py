"""A training loop that loses most of what it compiles. Run it under compilescope:

compilescope run examples/train_storm.py [BACKEND]

It tags the words of sentences of different lengths. Graph breaks cut its forward into pieces, and
a step counter recompiles some of them at every step, until PyTorch's recompile limit is reached.
"""

import logging
import sys

import torch
from torch import nn
from torch.nn import functional as F

PAD = 0
WORDS, TAGS = 200, 8
log = logging.getLogger("train")


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.after = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.after(x))


class Tagger(nn.Module):
    def __init__(self, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.blocks = nn.ModuleList(Block(width, heads=4) for _ in range(layers))
        self.head = nn.Linear(width, TAGS)
        self.step = 0

    def forward(self, tokens: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        # No need to compute on columns that are padding in every row.
        longest = int((tokens != PAD).sum(dim=1).max().item())
        tokens, tags = tokens[:, :longest], tags[:, :longest]
        mask = tokens != PAD
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x, mask)
        logits = self.head(x)
        if logits.abs().max() > 50:
            logits = logits.clamp(-50, 50)
        return self.loss(logits, tags, mask)

    def loss(self, logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self.step += 1
        smoothing = 0.1 * min(1.0, self.step / 100)
        losses = F.cross_entropy(
            logits.transpose(1, 2), tags, label_smoothing=smoothing, reduction="none"
        )
        loss = losses[mask].mean()
        log.info("step %d: loss %.3f", self.step, loss.item())
        return loss


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    made = []
    for number in range(count):
        lengths = torch.randint(6, 17, (8,))
        lengths[0] = 10 + number % 6
        tokens = torch.randint(1, WORDS, (8, 20))
        tokens[torch.arange(20) >= lengths[:, None]] = PAD
        made.append((tokens, tokens % TAGS))
    return made


def main(backend: str = "aot_eager") -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)
    model = Tagger()
    compiled = torch.compile(model, backend=backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for tokens, tags in batches(16):
        loss = compiled(tokens, tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {model.step} steps")


if __name__ == "__main__":
    main(*sys.argv[1:2])
