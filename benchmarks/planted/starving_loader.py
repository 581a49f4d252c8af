"""A `DataLoader` without workers whose samples take long."""

#: cause data
import time

import torch
from gpt import DEVICE, Net, fast
from torch.utils.data import DataLoader, Dataset

fast()


class Slow(Dataset):
    def __len__(self) -> int:
        return 120

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.05)
        return torch.full((16,), index % 7)


model = torch.compile(Net(width=64, layers=1).to(DEVICE))
with torch.no_grad():
    for ids in DataLoader(Slow(), batch_size=4):
        model(ids.to(DEVICE))
