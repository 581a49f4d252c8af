# ideal: none
# sound: mark-dynamic
"""Pads nothing: every batch has the length of its longest text."""

import torch


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(20, 8)
        self.out = torch.nn.Linear(8, 3)

    def forward(self, ids, *, scale):
        return self.out(self.embed(ids)) * scale


def batches():
    for length in (5, 9, 7, 6):
        yield torch.arange(2 * length).reshape(2, length) % 20


torch.manual_seed(0)
tagger = Tagger().eval()
fast = torch.compile(tagger, backend="eager")
with torch.no_grad():
    for number, ids in enumerate(batches()):
        # Lengths differ from batch to batch.
        logits = fast(ids, scale=0.5)
        print(number, tuple(logits.shape), f"{logits.sum().item():.4f}")
