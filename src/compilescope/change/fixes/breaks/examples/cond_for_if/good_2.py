import torch


def f(x, y):
    def when_true():
        z = x.log() @ y
        return z

    def when_false():
        def when_true_2():
            z = y.log()
            z = z - 1
            return z

        def when_false_2():
            z = x
            return z.clone()

        z = torch.cond(y.min() > 0, when_true_2, when_false_2, ())
        return z

    z = torch.cond(x.min() > 0, when_true, when_false, ())
    return z * 2


torch.compile(f, backend="eager")(torch.ones(3, 3), torch.ones(3, 3))
