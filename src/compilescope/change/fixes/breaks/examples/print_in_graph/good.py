import torch


@torch.library.custom_op("program::print_in_f", mutates_args=())
def print_in_f(y: torch.Tensor) -> None:
    print("step", y.mean().item(), sep=": ", end="!\n")


print_in_f.register_fake(lambda y: None)
print_in_f.register_effect(torch._library.effects.EffectType.ORDERED)


# One step.
def f(x):
    y = x + 1
    # Where are we?
    print_in_f(y)  # every step
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
