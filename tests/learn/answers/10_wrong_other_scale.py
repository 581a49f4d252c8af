def spread(x):
    return (x.amax(-1) - x.amin(-1)) / x.std(-1, correction=0)
