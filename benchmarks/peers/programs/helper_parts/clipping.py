"""Clips by a limit that the data decide."""


def clip_outliers(values, share):
    ordered = values.sort().values
    limit = ordered[int(len(ordered) * share)].item()
    return values.clamp(max=limit)
