def pays_after(fn, x, backend):
    return 100
