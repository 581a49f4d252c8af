import torch
from scipy.optimize import linear_sum_assignment


@torch.library.custom_op("program::linear_sum_assignment_in_graph", mutates_args=())
def linear_sum_assignment_operator(cost_matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = linear_sum_assignment(cost_matrix.numpy())
    return torch.from_numpy(rows), torch.from_numpy(columns)


@linear_sum_assignment_operator.register_fake
def linear_sum_assignment_operator_fake(cost_matrix):
    rows = cost_matrix.new_empty(min(cost_matrix.shape), dtype=torch.int64)
    return rows, torch.empty_like(rows)


def linear_sum_assignment_in_graph(cost_matrix):
    cost_matrix = torch.as_tensor(cost_matrix, dtype=torch.float64).detach()
    rows, columns = linear_sum_assignment_operator(cost_matrix)
    return rows.numpy(), columns.numpy()


@torch.no_grad()
def matched(cost):
    rows, columns = linear_sum_assignment_in_graph(cost)
    return torch.as_tensor(rows), torch.as_tensor(columns)


def f(cost):
    rows, columns = matched(cost.sigmoid())
    return cost[rows, columns].sum()


torch.compile(f, backend="eager")(torch.randn(4, 3))
