"""A recommender's trainer: its method is compiled, with the update and a running mean inside."""

import torch
import torch.nn.functional as F


class Towers(torch.nn.Module):
    def __init__(self, users, items, width):
        super().__init__()
        self.users = torch.nn.Embedding(users, width)
        self.items = torch.nn.Embedding(items, width)
        self.head = torch.nn.Sequential(
            torch.nn.Linear(2 * width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
        )

    def forward(self, user, item):
        both = torch.cat([self.users(user), self.items(item)], dim=1)
        return self.head(both).squeeze(1)


class Fit:
    def __init__(self, towers, lr):
        self.towers = towers
        self.updates = torch.optim.Adam(towers.parameters(), lr=lr)
        self.running = 0.0
        self.on_batch = torch.compile(self._on_batch, backend="aot_eager")

    def _on_batch(self, user, item, liked):
        logits = self.towers(user, item)
        loss = F.binary_cross_entropy_with_logits(logits, liked)
        self.updates.zero_grad()
        loss.backward()
        self.updates.step()
        self.running = 0.9 * self.running + 0.1 * loss.item()
        return (logits.detach().sign() == 2 * liked - 1).float().mean()

    def epoch(self, generator, steps):
        right = 0.0
        for _ in range(steps):
            user = torch.randint(20, (8,), generator=generator)
            item = torch.randint(30, (8,), generator=generator)
            right += self.on_batch(user, item, ((user + item) % 2).float()).item()
        return right / steps


def main():
    torch.manual_seed(0)
    fit = Fit(Towers(20, 30, 6), lr=0.01)
    generator = torch.Generator().manual_seed(2)
    print(f"right {fit.epoch(generator, 6):.2f}, running loss {fit.running:.2f}")


if __name__ == "__main__":
    main()
