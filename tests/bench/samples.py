"""Samples with the canaries before and after them, and what they say together."""

import math
import statistics


class Canary:
    """One check of the machine: nanoseconds of a cache line between two CPUs, per cent of time lost to others."""

    def __init__(self, line, lost):
        self.line = line
        self.lost = lost

    @staticmethod
    def parse(text):
        line, lost = text.split()
        return Canary(float(line), float(lost))


class Limits:
    """What the canaries of a sample may say if the sample is to count."""

    def __init__(self, line, lost):
        self.line = line
        self.lost = lost

    def verdict(self, before, after):
        """None if the sample counts, otherwise why it does not."""
        if max(before.lost, after.lost) > self.lost:
            return "busy"
        if max(before.line, after.line) > self.line:
            return "far"
        return None


class Series:
    """The samples of one contender."""

    def __init__(self):
        self.values = []
        self.dropped = {}

    def add(self, value, verdict):
        if verdict is None:
            self.values.append(value)
        else:
            self.dropped[verdict] = self.dropped.get(verdict, 0) + 1

    def median(self):
        return statistics.median(self.values) if self.values else math.nan

    def minimum(self):
        return min(self.values) if self.values else math.nan

    def maximum(self):
        return max(self.values) if self.values else math.nan


def cost_ratio(mine, other, more_is_better):
    """The cost of `mine` as a multiple of the cost of `other`: above 1 is worse, in any unit. NaN if one is missing."""
    if more_is_better:
        mine, other = other, mine
    if math.isnan(mine) or math.isnan(other) or other == 0:
        return math.nan
    return mine / other


def show(value):
    return "-" if math.isnan(value) else "%.3g" % value
