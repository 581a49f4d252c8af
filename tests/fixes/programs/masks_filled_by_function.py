# ideal: function-operator
import torch

SPECIAL = [101, 102, 1012]


def masks_of(ids):
    """Tokens between two special ones see each other."""
    batch, count = ids.shape
    special = torch.zeros((batch, count), device=ids.device).bool()
    for token in SPECIAL:
        special |= ids == token
    places = torch.nonzero(special)
    mask = torch.eye(count, device=ids.device).bool().unsqueeze(0).repeat(batch, 1, 1)
    positions = torch.zeros((batch, count), device=ids.device)
    previous = 0
    for i in range(places.shape[0]):
        row, column = places[i]
        if (column == 0) or (column == count - 1):
            mask[row, column, column] = True
            positions[row, column] = 0
        else:
            mask[row, previous + 1 : column + 1, previous + 1 : column + 1] = True
            positions[row, previous + 1 : column + 1] = torch.arange(0, column - previous)
        previous = column
    return mask, positions.to(torch.long)


@torch.compile(backend="eager")
def f(x, ids):
    mask, positions = masks_of(ids)
    return x.masked_fill(~mask, 0.0).sum(-1) + positions


torch.manual_seed(0)
for last in (102, 1012, 30):
    ids = torch.tensor([[101, 20, 1012, 40, last]])
    print(f(torch.randn(1, 5, 5), ids))
