"""The check of the values is a function of its own, for the caller."""


def smooth(x):
    y = x.sigmoid().mul(x)
    z = y.abs().neg().exp()
    return y.add(z).div(z + 1)


def is_sound(z):
    return bool(z.max() <= 1)
