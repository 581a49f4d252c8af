"""Sequence-to-sequence forecasting of a noisy seasonal series, with scheduled teacher forcing."""

import os
import random
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

HISTORY = 6
HORIZON = 4
EPOCHS = 5


def make_series(length, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(length).float()
    season = torch.sin(2 * torch.pi * t / 12) + 0.4 * torch.sin(2 * torch.pi * t / 5)
    return season + 0.1 * torch.randn(length, generator=g)


class Windows(Dataset):
    def __init__(self, series):
        self.series = series

    def __len__(self):
        return len(self.series) - HISTORY - HORIZON

    def __getitem__(self, index):
        past = self.series[index : index + HISTORY]
        future = self.series[index + HISTORY : index + HISTORY + HORIZON]
        return past[:, None], future[:, None]


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(1, hidden)

    def forward(self, past):
        h = past.new_zeros(past.shape[0], self.hidden)
        c = past.new_zeros(past.shape[0], self.hidden)
        for t in range(past.shape[1]):
            h, c = self.cell(past[:, t], (h, c))
        return h, c


class Decoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.cell = nn.LSTMCell(1, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, value, state):
        h, c = self.cell(value, state)
        return self.out(h), (h, c)


class Forecaster(nn.Module):
    def __init__(self, hidden=24, forcing=0.5):
        super().__init__()
        self.encoder = Encoder(hidden)
        self.decoder = Decoder(hidden)
        self.forcing = forcing

    def forward(self, past, future=None):
        state = self.encoder(past)
        value = past[:, -1]
        outputs = []
        for t in range(HORIZON):
            prediction, state = self.decoder(value, state)
            outputs.append(prediction)
            value = prediction
            if future is not None and random.random() < self.forcing:
                value = future[:, t]
        return torch.stack(outputs, dim=1)


def train_epoch(model, loader, optimizer):
    model.train()
    losses = []
    for past, future in loader:
        loss = F.mse_loss(model(past, future), future)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    error, naive, count = 0.0, 0.0, 0
    for past, future in loader:
        error += (model(past) - future).abs().sum().item()
        naive += (past[:, -1:] - future).abs().sum().item()
        count += future.numel()
    return error / count, naive / count


def main():
    random.seed(4)
    torch.manual_seed(4)
    train = DataLoader(
        Windows(make_series(320, seed=1)), batch_size=16, shuffle=True, drop_last=True
    )
    test = DataLoader(Windows(make_series(144, seed=2)), batch_size=16, drop_last=True)
    net = Forecaster()
    model = torch.compile(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.85)
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(EPOCHS):
            loss = train_epoch(model, train, optimizer)
            mae, naive = evaluate(model, test)
            scheduler.step()
            print(f"epoch {epoch}: mse {loss:.3f} test mae {mae:.3f} (naive {naive:.3f})")
            torch.save(net.state_dict(), os.path.join(folder, f"epoch{epoch}.pt"))
        last = sorted(os.listdir(folder))[-1]
        net.load_state_dict(torch.load(os.path.join(folder, last)))
    past, future = next(iter(test))
    with torch.no_grad():
        forecast = net(past)[0, :, 0]
    rows = zip(forecast.tolist(), future[0, :, 0].tolist(), strict=True)
    print("forecast vs truth:", ", ".join(f"{a:.2f}/{b:.2f}" for a, b in rows))


if __name__ == "__main__":
    main()
