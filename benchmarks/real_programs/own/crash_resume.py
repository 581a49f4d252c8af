"""Recommender with EmbeddingBag; crashes on a bad batch in the middle of training."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class Recommender(nn.Module):
    def __init__(self, items=50, dim=16, genres=5):
        super().__init__()
        self.bag = nn.EmbeddingBag(items, dim, mode="mean")
        self.item = nn.Embedding(items, dim)
        self.genre = nn.Embedding(genres, dim)
        self.mlp = nn.Sequential(nn.Linear(3 * dim, 32), nn.ReLU(), nn.Linear(32, 1))
        self.seen = 0

    def user_vector(self, history, offsets):
        return self.bag(history, offsets)

    def forward(self, history, offsets, item, genre):
        user = self.user_vector(history, offsets)
        print(end="")  # left from debugging
        rows = torch.cat([user, self.item(item), self.genre(genre)], 1)
        return self.mlp(rows).squeeze(1)


class Feed:
    def __init__(self, batch, length, bad_at, seed=0):
        self.rng, self.batch, self.length, self.bad_at = random.Random(seed), batch, length, bad_at

    def __iter__(self):
        for i in range(self.length):
            hist = [self.rng.randrange(50) for _ in range(4 * self.batch)]
            offsets = list(range(0, 4 * self.batch, 4))
            item = [self.rng.randrange(50) for _ in range(self.batch)]
            genre = [v % 5 for v in item]
            if i == self.bad_at:
                genre = genre[:-1]
            label = [float(v % 2) for v in item]
            yield (*map(torch.tensor, (hist, offsets, item, genre)), torch.tensor(label))


def train(model, compiled, feed):
    opt = torch.optim.Adagrad(model.parameters(), 0.1)
    for step, (history, offsets, item, genre, label) in enumerate(feed):
        loss = F.binary_cross_entropy_with_logits(compiled(history, offsets, item, genre), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 4 == 0:
            print(f"step {step}: {loss.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Recommender()
    train(model, torch.compile(model, backend="aot_eager"), Feed(8, 20, bad_at=11))
