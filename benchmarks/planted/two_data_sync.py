"""Training from a `DataLoader` without workers; a metric is read after each block."""

#: causes data sync
#: needs cuda
import time

import torch
from gpt import LENGTH, Net, fast, optimizer
from torch.utils.data import DataLoader, Dataset
from turns import planted, run

DATA, SYNC = planted("data"), planted("sync")
fast()


class Texts(Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> torch.Tensor:
        if DATA:
            time.sleep(0.0002)
        return torch.full((LENGTH,), index % 7)


def batches():
    while True:
        yield from DataLoader(Texts(), batch_size=16)


net = Net(width=1024, layers=8).cuda()
opt = optimizer(net)
blocks = [torch.compile(block) for block in net.blocks]
texts = batches()


def step() -> None:
    x = net.embedding(next(texts).cuda())
    norms = []
    for block in blocks:
        x = block(x)
        if SYNC:
            norms.append(x.detach().norm().item())  #: here sync
    x.square().mean().backward()
    opt.step()
    opt.zero_grad()


run(step, 40)
