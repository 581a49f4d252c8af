def extra_bytes(forward, backward):
    return 0
