#: because: no function of SciPy whose sizes are known
import torch
from scipy.optimize._lsap import linear_sum_assignment as assign


def f(cost):
    # A private name may come to mean something else.
    rows, columns = assign(cost)
    return cost[torch.as_tensor(rows), torch.as_tensor(columns)].sum()


torch.compile(f, backend="eager")(torch.randn(4, 3))
