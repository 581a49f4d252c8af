# ruff: noqa: B905
# mypy: ignore-errors
"""Makes the input tensors of a repro script: from a seed, a constant, or saved numbers."""

import json

import torch


def tensor(
    shape,
    dtype,
    *,
    stride=None,
    device="cpu",
    grad=False,
    dynamic=(),
    fill=None,
    low=0,
    high=0,
    seed=0,
    saved=None,
):
    """Numbers by seed; where they matter, as they were. Whole ones from low to high."""
    if stride is None:
        stride = torch.empty(shape, device="meta").stride()
    length = 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    length = 0 if 0 in shape else length
    if saved is not None:
        whole = laid_out(saved, shape, stride, length).to(dtype)
    elif fill is not None:
        whole = torch.full((length,), fill).to(dtype)
    elif dtype.is_floating_point or dtype.is_complex:
        drawn = torch.complex64 if dtype.is_complex else torch.float32
        generator = torch.Generator().manual_seed(seed)
        whole = torch.randn(length, generator=generator, dtype=drawn).to(dtype)
    else:
        generator = torch.Generator().manual_seed(seed)
        whole = torch.randint(low, high + 1, (length,), generator=generator).to(dtype)
    made = whole.to(device).as_strided(shape, stride).requires_grad_(grad)
    for dim in range(len(shape)):
        if dim in dynamic:
            torch._dynamo.maybe_mark_dynamic(made, dim)
        else:
            torch._dynamo.mark_static(made, dim)
    return made


def laid_out(saved, shape, stride, length):
    """Saved numbers, as many as the shape takes, where the strides want them."""
    numbers = torch.as_tensor(saved)[tuple(slice(size) for size in shape)]
    places = torch.zeros(shape, dtype=torch.int64)
    for dim, (size, step) in enumerate(zip(shape, stride)):
        steps = torch.arange(size) * step
        places += steps.reshape([-1 if at == dim else 1 for at in range(len(shape))])
    whole = torch.zeros(length, dtype=numbers.dtype)
    whole[places] = numbers
    return whole


def read_tensors(path):
    """A safetensors file, without the package of that name."""
    with open(path, "rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    names = {"BF16": "bfloat16", "BOOL": "bool", "C64": "complex64"}
    names.update(F8_E4M3="float8_e4m3fn", F8_E5M2="float8_e5m2")
    for size in ("8", "16", "32", "64"):
        names.update({"I" + size: "int" + size, "U" + size: "uint" + size})
        names["F" + size] = "float" + size
    tensors = {}
    for name, about in head.items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        dtype = getattr(torch, names[about["dtype"]])
        flat = torch.frombuffer(data[begin:end], dtype=dtype) if end > begin else torch.empty(0)
        tensors[name] = flat.to(dtype).reshape(about["shape"])
    return tensors
