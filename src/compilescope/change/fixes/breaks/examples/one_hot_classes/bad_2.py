import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(4, 2)

    def forward(self, labels):
        hot = F.one_hot(labels).float()
        return self.mix(hot)


torch.compile(Net(), backend="eager")(torch.tensor([0, 3, 1]))
