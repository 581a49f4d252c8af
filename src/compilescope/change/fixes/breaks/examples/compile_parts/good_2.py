import torch


@torch.compiler.disable
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

    def _forward_scores(self, x):
        return self.head(self.backbone(x)).exp()

    @torch.compiler.disable(recursive=False)
    def forward(self, x):
        scores = self._forward_scores(x)
        if self.training:
            return scores
        return [kept(each) for each in scores.unbind()]


detector = torch.compile(Detector().eval(), backend="eager")
for _ in range(2):
    detector(torch.ones(2, 3))
