# ideal: none
# trap: np.digitize takes descending edges too, np.searchsorted does not
import numpy as np
import torch

EDGES = np.array([0.9, 0.6, 0.3])


@torch.compile(backend="eager")
def bucket(x):
    return torch.from_numpy(np.digitize(x.numpy(), EDGES)) * 10


print(bucket(torch.tensor([0.1, 0.5, 0.95])), bucket(torch.tensor([0.7, 0.3, 2.0])))
