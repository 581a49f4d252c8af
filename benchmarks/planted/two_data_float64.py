"""Evaluation from a `DataLoader` without workers, with a score in float64."""

#: causes data float64
import time

import torch
from gpt import DEVICE, LENGTH, ON_GPU, Net, fast
from torch.utils.data import DataLoader, Dataset
from turns import planted, run

DATA, FLOAT64 = planted("data"), planted("float64")
fast()


class Texts(Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> torch.Tensor:
        if DATA:
            time.sleep(0.0001 if ON_GPU else 0.005)
        return torch.full((LENGTH,), index % 7)


def batches():
    while True:
        yield from DataLoader(Texts(), batch_size=16 if ON_GPU else 4)


net = Net(layers=1).to(DEVICE).eval()
model = torch.compile(net)
texts = batches()
weight = torch.ones(1024, 2048, device=DEVICE, dtype=torch.float64 if FLOAT64 else torch.float32)


def score(logits: torch.Tensor) -> torch.Tensor:
    return torch.matmul(logits.to(weight.dtype), weight).logsumexp(-1).mean()  #: here float64


def step() -> None:
    with torch.no_grad():
        score(model(next(texts).to(DEVICE)))


run(step)
