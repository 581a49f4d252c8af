"""Takes the time of calls."""

import time


class Stopwatch:
    def __init__(self, name):
        self.name = name
        self.last = 0.0

    def begin(self):
        self.last = time.monotonic()

    def passed(self):
        return self.last


def timed(watch, function, *args):
    watch.begin()
    result = function(*args)
    watch.passed()
    return result
