"""A function far from the program that uses it."""


def triple(x):
    print("tripling")
    return x * 3


def untouched(x):
    return x - 1
