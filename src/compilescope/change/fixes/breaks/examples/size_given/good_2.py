import torch
import torch.nn.functional as F


def scatter_sum(src, index, dim_size=None):
    if dim_size is None:
        dim_size = int(index.max()) + 1
    out = src.new_zeros(dim_size, src.shape[-1])
    return out.index_add(0, index, src)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x, edges, batch, labels):
        x = x + scatter_sum(x[edges[0]], edges[1], x.shape[0])
        pooled = scatter_sum(x, batch, dim_size=labels.shape[0])
        scores = self.head(pooled)
        return F.cross_entropy(scores, labels)


edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
batch, labels = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 1, 0])
torch.compile(Net(), backend="eager")(torch.ones(5, 4), edges, batch, labels)
