import torch


@torch.library.custom_op("program::print_in_f", mutates_args=())
def print_in_f(shown: torch.Tensor) -> None:
    print(f"loss {shown.item():.3f}", shown.item())


print_in_f.register_fake(lambda shown: None)
print_in_f.register_effect(torch._library.effects.EffectType.ORDERED)


def f(x):
    loss = x.pow(2).mean()
    shown = loss.detach().clone()
    print_in_f(shown)
    return loss * 2


torch.compile(f, backend="eager")(torch.ones(3))
