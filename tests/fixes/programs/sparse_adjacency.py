# ideal: nonstrict-part
import torch


@torch.compile(backend="eager")
def propagate(features, edges):
    hidden = features.relu()
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (4, 4))
    messages = torch.sparse.mm(adjacency, hidden)
    return messages.tanh() + features


edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
print([round(v, 4) for v in propagate(torch.arange(8.0).reshape(4, 2), edges).flatten().tolist()])
