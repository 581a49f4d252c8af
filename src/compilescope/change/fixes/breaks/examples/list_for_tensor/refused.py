#: because: `shapes\[0\] \+= 1` changes the tensor
import torch


def rows(shapes):
    found = []
    for height, width in shapes:
        found.append(torch.zeros(height, width).flatten())
    return torch.cat(found)


@torch.compile(backend="eager")
def f(maps):
    sizes = [each.shape for each in maps]
    shapes = torch.as_tensor(sizes)
    shapes[0] += 1
    return rows(shapes)


f([torch.ones(4, 6), torch.ones(2, 3)])
