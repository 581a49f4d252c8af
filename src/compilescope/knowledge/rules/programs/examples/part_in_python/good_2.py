import torch


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 4)
        torch.nn.init.eye_(self.net.weight)
        torch.nn.init.zeros_(self.net.bias)

    def forward(self, x):
        return self.net(x).sigmoid()

    def decode(self, scores):
        found = []
        for row in range(scores.shape[0]):
            found.append({"scores": scores[row][scores[row] > 0.6]})
        return found


detector = Detector()
fast = torch.compile(detector, backend="eager")
with torch.no_grad():
    for part in detector.decode(fast(torch.arange(8.0).view(2, 4) - 3)):
        print([round(each, 3) for each in part["scores"].tolist()])
