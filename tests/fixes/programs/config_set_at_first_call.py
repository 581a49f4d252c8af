# ideal: first-call-eager
import torch
from torch import nn


class Config:
    def __init__(self, labels):
        self.num_labels = labels
        self.problem_type = None


class Classifier(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.head = nn.Linear(8, config.num_labels)

    def forward(self, x, labels):
        logits = self.head(x)
        if self.config.problem_type is None:
            if self.config.num_labels == 1:
                self.config.problem_type = "regression"
            else:
                self.config.problem_type = "single_label"
        if self.config.problem_type == "regression":
            return (logits.squeeze(-1) - labels).pow(2).mean()
        return nn.functional.cross_entropy(logits, labels)


torch.manual_seed(0)
model = Classifier(Config(3))
model.compile(backend="eager")
for _ in range(4):
    print(f"{model(torch.ones(2, 8), torch.tensor([0, 2])).item():.5f}")
