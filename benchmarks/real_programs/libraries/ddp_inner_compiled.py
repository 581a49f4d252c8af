"""Data-parallel training on two processes: the network is compiled, then wrapped in DDP."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Regressor(nn.Module):
    def __init__(self, features=10, width=32):
        super().__init__()
        self.net1 = nn.Linear(features, width)
        self.norm = nn.LayerNorm(width)
        self.net2 = nn.Linear(width, 1)

    def forward(self, x):
        return self.net2(torch.relu(self.norm(self.net1(x)))).squeeze(-1)


def make_dataset(size=144):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(size, 10, generator=generator)
    return TensorDataset(x, x[:, 0] * x[:, 1] + x[:, 2])


def main():
    dist.init_process_group(backend="gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.compile(Regressor()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    dataset = make_dataset()
    sampler = DistributedSampler(dataset, shuffle=True, seed=3)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler, drop_last=True)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss {total.item() / dist.get_world_size():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
