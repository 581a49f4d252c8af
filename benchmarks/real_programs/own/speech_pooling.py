"""Speaker identification from ragged utterances: conv frames, mean and std over each utterance."""

import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

SPEAKERS = 5
MELS = 20


class Utterances(Dataset):
    """Filter-bank frames: a tone that belongs to the speaker, plus noise."""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for i in range(count):
            speaker = i % SPEAKERS
            length = torch.randint(24, 61, (1,), generator=g).item()
            t = torch.arange(length).float()
            tone = torch.sin(2 * math.pi * t * (speaker + 1) / 25)
            frames = 0.7 * torch.randn(length, MELS, generator=g)
            frames[:, 3 * speaker : 3 * speaker + 4] += 0.6 * tone[:, None]
            self.items.append((frames, speaker))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(batch):
    frames, speakers = zip(*batch, strict=True)
    lengths = torch.tensor([len(f) for f in frames])
    return pad_sequence(frames, batch_first=True), lengths, torch.tensor(speakers)


class ConvBlock(nn.Module):
    def __init__(self, cin, cout, dilation):
        super().__init__()
        self.conv = nn.Conv1d(cin, cout, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(1, cout)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class StatsPool(nn.Module):
    """Mean and standard deviation over the real frames of every utterance."""

    def forward(self, x, lengths):
        rows = []
        for i, n in enumerate(lengths.tolist()):
            frames = x[i, :, :n]
            rows.append(torch.cat([frames.mean(dim=1), frames.std(dim=1)]))
        return torch.stack(rows)


class SpeakerNet(nn.Module):
    def __init__(self, width=24, embedding=16):
        super().__init__()
        self.frames = nn.Sequential(ConvBlock(MELS, width, 1), ConvBlock(width, width, 2))
        self.pool = StatsPool()
        self.embed = nn.Linear(2 * width, embedding)
        self.classify = nn.Linear(embedding, SPEAKERS)

    def forward(self, x, lengths):
        x = self.frames(x.transpose(1, 2))
        x = self.pool(x, lengths)
        embedding = F.normalize(self.embed(x), dim=-1)
        return self.classify(embedding * 8.0), embedding


def train_one_epoch(model, loader, optimizer):
    model.train()
    loss_sum, seen = 0.0, 0
    for x, lengths, speakers in loader:
        logits, _ = model(x, lengths)
        loss = F.cross_entropy(logits, speakers, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        loss_sum += loss.item() * len(x)
        seen += len(x)
    return loss_sum / seen


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits, seen, table = 0, 0, {}
    for x, lengths, speakers in loader:
        logits, embedding = model(x, lengths)
        hits += (logits.argmax(-1) == speakers).sum().item()
        seen += len(x)
        for row, speaker in zip(embedding, speakers.tolist(), strict=True):
            table.setdefault(speaker, []).append(row)
    means = torch.stack([torch.stack(table[s]).mean(0) for s in sorted(table)])
    spread = torch.pdist(means).mean().item()
    return hits / seen, spread


def main():
    torch.manual_seed(21)
    train = DataLoader(
        Utterances(60, seed=3), batch_size=4, shuffle=True, collate_fn=collate, drop_last=True
    )
    test = DataLoader(Utterances(20, seed=4), batch_size=4, collate_fn=collate)
    model = SpeakerNet()
    model.compile(backend="aot_eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    for epoch in range(3):
        loss = train_one_epoch(model, train, optimizer)
        accuracy, spread = evaluate(model, test)
        schedule.step()
        print(f"epoch {epoch} loss {loss:.3f} accuracy {accuracy:.2f} spread {spread:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), os.path.join(folder, "speaker.pt"))
        print("saved", sorted(os.listdir(folder)))


if __name__ == "__main__":
    main()
