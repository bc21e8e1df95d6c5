"""What one rank computes in a step: when each gradient is ready, and what comes before and after."""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pydtconv.profiling.profile import Profile
from pydtconv.simulation.spread import Spread

#: outside of the plan, before it and after it; "optimizer" stands by itself
_BEFORE, _AFTER = ("inputs",), ("results", "metrics")


@dataclass(frozen=True)
class Bucket:
    """Gradients that are reduced together.  ready: seconds after the step's start; share: of all elements."""

    ready: float
    nbytes: int
    share: float


@dataclass(frozen=True)
class Work:
    """One step of one rank, in seconds: when backward is over, what the optimizer and the rest after it take."""

    buckets: tuple[Bucket, ...]
    backward_end: float
    optimizer: float
    after: float

    @property
    def seconds(self) -> float:
        """The step without communication."""
        return self.backward_end + self.optimizer + self.after

    def times(self, factor: float) -> Work:
        """The step of a rank that takes so many times as long."""
        buckets = tuple(replace(bucket, ready=factor * bucket.ready) for bucket in self.buckets)
        return Work(buckets, factor * self.backward_end, factor * self.optimizer, factor * self.after)


class Workload:
    """A model's step at any number of images, from profiles of one or several batch sizes.

    A step is cut where gradients become ready: plans of different batch sizes may run other parts between those
    moments.  Between two batch sizes the time from one to the next is interpolated linearly, beyond them continued
    along the nearest two; with one profile it is proportional to the images, which small batches are not.  Raises
    ValueError where the profiles are not of the same model.
    """

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self.profiles = sorted(profiles, key=lambda profile: profile.batch_size)
        if not self.profiles:
            raise ValueError("profiles: expected one or more, got none")
        first = self.profiles[0]
        for one, other in itertools.pairwise(self.profiles):
            if other.batch_size == one.batch_size:
                raise ValueError(f"profiles: expected different batch sizes, got {one.batch_size} twice")
            if _gradients(other) != _gradients(first) or other.dtype != first.dtype:
                raise ValueError(f"profiles: expected steps of one model, got {_named(first)} and {_named(other)}")
        if not first.gradient_elements:
            raise ValueError(f"profiles: expected steps with gradients, {first.model} has none")
        self.model = first.model
        self._sizes = [profile.batch_size for profile in self.profiles]
        self._gradients = _gradients(first)
        #: of each batch normalization
        self.channels = tuple(
            int(timing.shape.split("x")[-1])
            for timing in first.timings
            if (timing.kind, timing.direction) == ("batchnorm", "forward")
        )
        #: of each profile: its step, which waits for nobody, over the sum of its parts
        self._scales = [_scale(profile) for profile in self.profiles]
        stretches = [_stretches(profile) for profile in self.profiles]
        self._seconds = np.array(stretches) * np.array(self._scales)[:, None]

    def _at(self, images: int) -> np.ndarray:
        """Seconds of each stretch for so many images."""
        sizes, seconds = self._sizes, self._seconds
        if len(sizes) == 1:
            return np.asarray(seconds[0] * (images / sizes[0]))
        i = min(max(bisect.bisect_left(sizes, images), 1), len(sizes) - 1)
        slope = (seconds[i] - seconds[i - 1]) / (sizes[i] - sizes[i - 1])
        return np.maximum(seconds[i - 1] + slope * (images - sizes[i - 1]), 0)

    def work(self, images: int, bucket_bytes: int) -> Work:
        """The step with so many images, its gradients cut into buckets of neighbours of at most bucket_bytes.

        A single variable that is larger is a bucket of its own.  What does not depend on the images (the optimizer,
        the metrics' start) is taken from the nearest profile.
        """
        index = self._nearest(images)
        nearest, scale = self.profiles[index], self._scales[index]
        fixed = {timing.node: scale * timing.seconds for timing in nearest.timings if timing.index < 0}
        *stretches, rest = (float(seconds) for seconds in self._at(images))
        now = sum(fixed.get(name, 0.0) for name in _BEFORE)
        ready: list[tuple[int, float]] = []
        for gradients, seconds in zip(self._gradients, stretches, strict=True):
            now += seconds
            ready += [(start, now) for start, _ in gradients]
        now += rest
        after = sum(fixed.get(name, 0.0) for name in _AFTER)
        buckets = tuple(self._buckets(sorted(ready), bucket_bytes))
        return Work(buckets, now, fixed.get("optimizer", 0.0), after)

    def spread(self, images: int) -> Spread:
        """How much steps with so many images differ: as much as those of the nearest profile."""
        nearest = self.profiles[self._nearest(images)]
        return Spread(nearest.step_seconds, nearest.reduction_seconds, nearest.ranks)

    def _nearest(self, images: int) -> int:
        return min(range(len(self._sizes)), key=lambda i: abs(self._sizes[i] - images))

    def _buckets(self, ready: list[tuple[int, float]], bucket_bytes: int) -> list[Bucket]:
        whole, itemsize = self.profiles[0].gradient_elements, np.dtype(self.profiles[0].dtype).itemsize
        limit = max(bucket_bytes // itemsize, 1)
        starts = [start for start, _ in ready] + [whole]
        found, first = [], 0
        for i in range(1, len(starts)):
            if i == len(starts) - 1 or starts[i + 1] - starts[first] > limit:
                elements = starts[i] - starts[first]
                moment = max(moment for _, moment in ready[first:i])
                found.append(Bucket(moment, elements * itemsize, elements / whole))
                first = i
        return found


def _gradients(profile: Profile) -> list[tuple[tuple[int, int], ...]]:
    """What becomes ready in the profile's plan, in order."""
    return [timing.gradients for timing in profile.timings if timing.gradients]


def _scale(profile: Profile) -> float:
    """By what the parts are to be multiplied to sum to the mean step, without waiting for other processes.

    To the median one where the profile does not have all steps.
    """
    waits = sum(timing.seconds for timing in profile.timings if timing.index < 0 and timing.node == "wait")
    parts = sum(timing.seconds for timing in profile.timings) - waits
    whole = statistics.fmean(profile.step_seconds) if profile.step_seconds else profile.seconds - waits
    return whole / parts if parts and whole > 0 else 1.0


def _stretches(profile: Profile) -> list[float]:
    """Seconds up to each moment at which gradients become ready, from the one before, and from the last to the end.

    The time between the plan's parts is spread over them.
    """
    parts = [timing for timing in profile.timings if timing.index >= 0]
    between = sum(timing.seconds for timing in profile.timings if timing.index < 0 and timing.node == "between")
    stretches = [0.0]
    for timing in parts:
        stretches[-1] += timing.seconds + between / len(parts)
        if timing.gradients:
            stretches.append(0.0)
    return stretches


def _named(profile: Profile) -> str:
    return f"{profile.model} ({profile.gradient_elements} gradients, {profile.dtype})"
