import torch


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
        self.head = torch.nn.Linear(3, 4)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        scores = self.head(x)
        return [each[each > each.mean().item()] for each in scores]


detector = torch.compile(Detector(), backend="eager")
for _ in range(2):
    detector(torch.ones(2, 3))
