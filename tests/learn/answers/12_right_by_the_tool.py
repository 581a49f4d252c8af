import compilescope


def is_rounding(eager, compiled, exact):
    return compilescope.compare_tensors(eager, compiled, exact=exact).verdict == "pass"
