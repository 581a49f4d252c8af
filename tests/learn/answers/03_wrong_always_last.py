def fastest(fn, x, backends):
    return list(backends)[-1]
