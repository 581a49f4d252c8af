#: note: a grad mode around the whole method becomes a `with`
import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.seen = []

    @torch.no_grad()
    def forward(self, x):
        """Without gradients."""
        scores = self.layers(x) * 2
        self.seen.append(scores.sum().item())
        return (scores + 1).log()


encoder = torch.compile(Encoder(), backend="eager")
for _ in range(2):
    encoder(torch.ones(2, 3))
