import torch


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.weights(x).relu()


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(), Layer()])
        self.head = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sigmoid())

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        scores = self.head(x)
        return [each[each > each.mean().item()] for each in scores]


detector = torch.compile(Detector(), backend="eager")
with torch.no_grad():
    for _ in range(2):
        detector(torch.ones(2, 3))
