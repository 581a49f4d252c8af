"""Serves a text-line finder: what overlaps is dropped by a method of the model itself."""

import torch
from torch import nn


class LineFinder(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.SiLU()
        )
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, stride=2, padding=1), nn.SiLU())
        self.spans = nn.Conv2d(channels, 3, 1)

    def forward(self, page):
        raw = self.spans(self.body(self.stem(page)))
        rows = raw.mean(3)
        top = rows[:, 0].tanh() + torch.arange(rows.shape[2])
        height = rows[:, 1].exp()
        score = rows[:, 2].sigmoid()
        found = []
        for lines, weight in zip(torch.stack([top, top + height], 2), score, strict=True):
            found.append(self._without_overlaps(lines, weight))
        return found

    def _without_overlaps(self, lines, weight):
        left = weight.argsort(descending=True)
        kept = []
        while len(left):
            first, rest = left[0], left[1:]
            kept.append(int(first))
            shared = torch.minimum(lines[first, 1], lines[rest, 1])
            shared = shared - torch.maximum(lines[first, 0], lines[rest, 0])
            left = rest[shared < 0.3]
        return lines[kept]


def serve(pages):
    torch.manual_seed(5)
    finder = LineFinder().eval()
    fast = torch.compile(finder, backend="aot_eager")
    with torch.no_grad():
        for page in pages:
            for lines in fast(page):
                print(len(lines), "lines")


if __name__ == "__main__":
    serve([torch.rand(2, 1, 16, 16, generator=torch.Generator().manual_seed(n)) for n in range(3)])
