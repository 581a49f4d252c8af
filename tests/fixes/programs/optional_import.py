# ideal: import-at-top
import torch


def activation(x):
    try:
        import a_fused_kernel_library_nobody_has as fused
    except ImportError:
        fused = None
    if fused is not None:
        return fused.gelu(x)
    return torch.nn.functional.gelu(x)


run = torch.compile(activation, backend="eager")
print(f"{run(torch.linspace(-2, 2, 5)).sum().item():.4f}")
