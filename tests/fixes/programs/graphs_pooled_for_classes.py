# ideal: size-given
# The number of graphs is that of their labels.
import torch
from torch import nn
import torch.nn.functional as F


def global_add_pool(x, batch, size=None):
    size = int(batch.max().item() + 1) if size is None else size
    return x.new_zeros(size, x.shape[-1]).index_add(0, batch, x)


class GraphClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.node = nn.Linear(4, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x, batch, labels):
        h = self.node(x).relu()
        pooled = global_add_pool(h, batch)
        logits = self.head(F.relu(pooled))
        return F.cross_entropy(logits, labels)


model = GraphClassifier()
step = torch.compile(model, backend="aot_eager")
for counts in ([2, 3, 1], [1, 1, 4], [3, 2, 1]):
    batch = torch.arange(3).repeat_interleave(torch.tensor(counts))
    loss = step(torch.randn(6, 4), batch, torch.randint(0, 3, (3,)))
    loss.backward()
    print(round(loss.item(), 4), round(model.node.weight.grad.sum().item(), 4))
