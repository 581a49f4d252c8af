import torch


def root(a):
    turn = 0
    x = a * 0.5
    def goes_on(x, turn):
        return ((x * x - a).abs().max() > 1e-3) & (turn < 20)

    def step(x, turn):
        x = 0.5 * (x + a / x)
        turn = turn + 1
        return x, turn

    x, turn = torch.while_loop(goes_on, step, (x, torch.tensor(turn)))
    return x


torch.compile(root, backend="eager")(torch.full((3,), 4.0))
