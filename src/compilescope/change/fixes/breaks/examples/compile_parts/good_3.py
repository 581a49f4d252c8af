import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.seen = []

    def _forward_scores(self, x):
        return self.layers(x) * 2

    def _forward_log(self, scores):
        return (scores + 1).log()

    @torch.compiler.disable(recursive=False)
    def forward(self, x):
        """Without gradients."""
        with torch.no_grad():
            scores = self._forward_scores(x)
            self.seen.append(scores.sum().item())
            return self._forward_log(scores)


encoder = torch.compile(Encoder(), backend="eager")
for _ in range(2):
    encoder(torch.ones(2, 3))
