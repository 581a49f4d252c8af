import torch


def f(x):
    # Until it fits.
    def goes_on(x):
        return x.abs().max() > 1

    def step(x):
        half = x / 2  # slowly
        x = half
        return (x.clone(),)

    (x,) = torch.while_loop(goes_on, step, (x,))
    return x + 1


torch.compile(f, backend="eager")(torch.full((3,), 4.0))
