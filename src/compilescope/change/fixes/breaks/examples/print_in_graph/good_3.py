import torch

STEP = 0


@torch.library.custom_op("program::print_in_f", mutates_args=())
def print_in_f(STEP: int, x: torch.Tensor) -> None:
    print("step", STEP, x.sum().item())


print_in_f.register_fake(lambda STEP, x: None)
print_in_f.register_effect(torch._library.effects.EffectType.ORDERED)


def f(x):
    global STEP
    STEP += 1
    print_in_f(STEP, x)
    return x * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3))
g(torch.ones(3))
