# ideal: converted-after
"""A classifier whose callers want plain Python lists."""

import torch


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.head = torch.nn.Linear(4, 3)

    @torch.no_grad()
    def forward(self, x):
        scores = self.head(x).softmax(-1)
        return scores.round(decimals=4).tolist()


classify = torch.compile(Classifier(), backend="aot_eager")
for scale in (1.0, 2.0):
    print(classify(torch.full((2, 4), scale)))
