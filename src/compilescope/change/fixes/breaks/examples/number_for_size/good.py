import torch


def counted(mask):
    counts = mask.sum(dim=1)
    most = counts.max().item()
    return most, counts


@torch.compiler.disable
def read_in_f(mask):
    return mask.any().item()


@torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
@torch.compile(backend="eager")
def f(x, mask):
    if read_in_f(mask):
        x = x[:1]
    most, counts = counted(mask)
    places = torch.arange(most) < counts.unsqueeze(-1)
    return x.sum() + x.new_zeros(2, most) + places


for row in ([True, True, False], [True, False, False], [False, False, False]):
    print(f(torch.ones(2, 3), torch.tensor([row, row])))
