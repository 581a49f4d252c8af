import torch
from scipy.optimize import linear_sum_assignment


@torch.no_grad()
def matched(cost):
    rows, columns = linear_sum_assignment(cost)
    return torch.as_tensor(rows), torch.as_tensor(columns)


def f(cost):
    rows, columns = matched(cost.sigmoid())
    return cost[rows, columns].sum()


torch.compile(f, backend="eager")(torch.randn(4, 3))
