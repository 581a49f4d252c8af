# ideal: compile-parts
# The method that breaks also calls the model, which must not be left to Python with it.
import torch
from torch import nn
import torch.nn.functional as F


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.backbone = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.score = nn.Linear(8, 1)
        self.seen = []

    def forward(self, x):
        return self.score(self.backbone(x)).squeeze(-1)

    def loss(self, x, boxes):
        scores = self(x)
        total = scores.new_zeros(())
        for i in range(2):
            found = (boxes[i] > 0.5).nonzero().squeeze(1)
            self.seen.append(found.tolist())
            if found.numel() > 0:
                total = total + F.softplus(-scores[i, found]).sum()
        return total


@torch.compile(backend="aot_eager")
def train_step(model, x, boxes):
    loss = model.loss(x, boxes)
    return loss * 0.5 + loss.square()


model = Detector()
for _ in range(3):
    loss = train_step(model, torch.randn(2, 4, 8), torch.rand(2, 4))
    loss.backward()
    print(round(loss.item(), 3), model.seen[-1])
