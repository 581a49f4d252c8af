#: because: is no constant
import torch
from scipy.optimize import linear_sum_assignment


def f(cost):
    rows, columns = linear_sum_assignment(cost, maximize=len(cost) > 3)
    return cost[torch.as_tensor(rows), torch.as_tensor(columns)].sum()


torch.compile(f, backend="eager")(torch.randn(4, 3))
