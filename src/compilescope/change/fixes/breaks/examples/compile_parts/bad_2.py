#: note: what is called in the middle stays outside as a whole
import torch


def kept(scores):
    found = []
    while scores.numel() > 0:
        best = scores.max()
        found.append(best)
        scores = scores[scores < best * 0.5]
    return torch.stack(found)


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.head = torch.nn.Linear(3, 4)

    def forward(self, x):
        scores = self.head(self.backbone(x)).exp()
        if self.training:
            return scores
        return [kept(each) for each in scores.unbind()]


detector = torch.compile(Detector().eval(), backend="eager")
for _ in range(2):
    detector(torch.ones(2, 3))
