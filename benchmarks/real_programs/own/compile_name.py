"""Price forecaster without torch.compile; run with --compile Encoder.

The seasonal number (day of the year) is read from the module inside forward.
"""
import math

import torch
import torch.nn as nn


class Calendar:
    def __init__(self):
        self.day = 0

    def tick(self):
        self.day = (self.day + 1) % 365


class Encoder(nn.Module):
    def __init__(self, calendar, window=14, hidden=24):
        super().__init__()
        self.calendar = calendar
        self.conv = nn.Conv1d(1, 8, 3, padding=1)
        self.mix = nn.Linear(8 * window, hidden)

    def forward(self, x):
        season = math.sin(2 * math.pi * self.calendar.day / 365)
        h = torch.relu(self.conv(x[:, None])).flatten(1)
        return torch.tanh(self.mix(h)) * (1 + 0.1 * season)


class Forecaster(nn.Module):
    def __init__(self, calendar):
        super().__init__()
        self.encoder = Encoder(calendar)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(-1)


def prices(n, day):
    t = torch.arange(15) + day
    return torch.sin(2 * math.pi * t / 7)[None] + 0.2 * torch.randn(n, 15)


def main():
    torch.manual_seed(0)
    cal = Calendar()
    model = Forecaster(cal)
    opt = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for day in range(30):
        series = prices(16, day)
        loss = nn.functional.huber_loss(model(series[:, :14]), series[:, 14])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses.append(loss.item())
        cal.tick()
        if day % 10 == 9:
            print(f"day {cal.day}: {sum(losses[-10:]) / 10:.4f}")
    model.eval()
    with torch.no_grad():
        s = prices(16, 31)
        print("mae", (model(s[:, :14]) - s[:, 14]).abs().mean().item())


if __name__ == "__main__":
    main()
