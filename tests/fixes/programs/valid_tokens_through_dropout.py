# ideal: one-more-row
# Only the tokens that are no padding go through the head.
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.head = nn.Sequential(
            nn.LayerNorm(8), nn.Dropout(0.2), nn.Linear(8, 5), nn.Dropout(0.1)
        )

    def forward(self, ids):
        x = self.embed(ids)
        valid = ids != 0
        logits = x.new_zeros(*ids.shape, 5)
        if valid.sum() > 0:
            logits[valid] = self.head(x[valid])
        return logits


torch.manual_seed(0)
model = torch.compile(Tagger().eval(), backend="eager")
with torch.no_grad():
    for ids in ([[1, 2, 0], [3, 0, 0]], [[4, 5, 6], [7, 8, 0]]):
        print(f"{model(torch.tensor(ids)).sum().item():.4f}")
