"""accelerate compiles what it prepares; the loop is the user's. It evaluates after each epoch."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return x + self.linear(x).relu()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def main():
    torch.manual_seed(0)
    accelerator = Accelerator(dynamo_backend="inductor", cpu=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(torch.randn(80, 8)), batch_size=4)
    held = DataLoader(TensorDataset(torch.randn(16, 8)), batch_size=4)
    model, optimizer, loader, held = accelerator.prepare(model, optimizer, loader, held)
    for _ in range(3):
        model.train()
        for (x,) in loader:
            loss = model(x).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        for (x,) in held:
            with torch.no_grad():
                model(x)


if __name__ == "__main__":
    main()
