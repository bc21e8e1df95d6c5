"""`Profile`: the median time of each part of a training step, with what it computes and moves; kept as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pydtconv.files.reading import parsing, read_json

FORMAT = "pydtconv profile"
VERSION = 1


@dataclass(frozen=True)
class Timing:
    """One part of a step.

    index: of the plan's step, -1 for what is outside of the plan.  node, kind: name of the node and of its operator.
    direction: the pass, or a part of it.  shape: of input and output.  seconds: median.  flops: of the direct method.
    multiplications: the fewest of a method known.  bytes: read and written.  gradients: elements [start, stop) of the
    flat array of gradients that are complete after it.
    """

    index: int
    node: str
    kind: str
    direction: str
    seconds: float
    shape: str = ""
    algorithm: str = ""
    flops: int = 0
    multiplications: int = 0
    bytes: int = 0
    gradients: tuple[tuple[int, int], ...] = ()

    @property
    def gflops(self) -> float | None:
        """Rate of the direct method's operations, None where there are none."""
        return self.flops / self.seconds / 1e9 if self.flops and self.seconds else None

    @property
    def gbytes(self) -> float | None:
        """GB/s, None where nothing is known to be moved."""
        return self.bytes / self.seconds / 1e9 if self.bytes and self.seconds else None

    def floor(self, peak_gflops: float, bandwidth: float) -> float:
        """Seconds that the multiplications take at the FMA peak or the bytes at the bandwidth (GB/s): the larger."""
        return max(2e-9 * self.multiplications / peak_gflops, 1e-9 * self.bytes / bandwidth)


@dataclass(repr=False)
class Profile:
    """A training step of one model and batch size.

    seconds: of the median step, all included.  timings: in the order in which they run.  samples: recorded steps.
    gradient_elements: length of the flat array of gradients.  step_seconds: of each recorded step, without waiting for
    other ranks.  reduction_seconds: in which the gradients of each of these steps were reduced, from when the last
    rank had them.  ranks: that trained together.
    """

    model: str
    batch_size: int
    threads: int
    dtype: str
    variant: str
    cpu: str
    samples: int
    seconds: float
    gradient_elements: int
    timings: list[Timing] = field(default_factory=list)
    step_seconds: list[float] = field(default_factory=list)
    reduction_seconds: list[float] = field(default_factory=list)
    ranks: int = 1

    @property
    def rest(self) -> Timing:
        """What the median step takes beyond the medians of its parts, each of which is seldom late."""
        return Timing(-1, "rest", "rest", "outside", self.seconds - sum(timing.seconds for timing in self.timings))

    # --- figures ---------------------------------------------------------------------------------------------------
    def grouped(self, *names: str) -> list[dict[str, Any]]:
        """Sums over timings that agree in the fields of these names, the longest first.

        Each row has the fields, `count`, `seconds`, `flops`, `multiplications` and `bytes`.
        """
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for timing in self.timings:
            key = tuple(getattr(timing, name) for name in names)
            start = dict(zip(names, key, strict=True)) | dict.fromkeys(_SUMMED, 0) | {"count": 0}
            row = rows.setdefault(key, start)
            row["count"] += 1
            for name in _SUMMED:
                row[name] += getattr(timing, name)
        return sorted(rows.values(), key=lambda row: -row["seconds"])

    def __repr__(self) -> str:
        parts = f"{len(self.timings)} parts, median of {self.samples}"
        return f"<Profile {self.model}, {self.batch_size} images: {1e3 * self.seconds:.2f} ms a step, {parts}>"

    def __str__(self) -> str:
        return "\n".join(self.lines(top=20))

    def lines(self, top: int | None = None) -> Iterator[str]:
        """The `top` longest parts (all by default) and the sums by operator and pass, as text."""
        yield (
            f"{self.model}, {self.batch_size} images: {1e3 * self.seconds:.2f} ms a step "
            f"({self.batch_size / self.seconds:.1f} images/s), median of {self.samples}, {self.threads} threads"
        )
        columns = f"{'ms':>9} {'share':>6} {'GFLOPS':>7} {'GB/s':>7}  "
        yield columns + f"{'pass':17} {'operator':18} {'algorithm':15} {'shape':44} node"
        longest = sorted(self.timings, key=lambda timing: -timing.seconds)
        for timing in longest[:top]:
            yield self._figures(timing) + (
                f"{timing.direction:17} {timing.kind[:18]:18} {timing.algorithm:15} {timing.shape:44} {timing.node}"
            )
        others = longest[len(longest) if top is None else top :]
        if others:
            seconds = sum(timing.seconds for timing in others)
            yield f"{self._figures(Timing(-1, '', '', '', seconds))}{len(others)} other parts"
        yield f"{self._figures(self.rest)}rest, which the medians of the parts leave of that of the step"
        yield columns + f"{'pass':17} {'operator':18} count"
        for row in self.grouped("direction", "kind"):
            timing = Timing(
                -1, "", row["kind"], row["direction"], row["seconds"], "", "", row["flops"], 0, row["bytes"]
            )
            yield f"{self._figures(timing)}{timing.direction:17} {timing.kind[:18]:18} {row['count']}"
        yield f"{self._figures(self.rest)}{self.rest.direction:17} {self.rest.kind}"

    def _figures(self, timing: Timing) -> str:
        share = timing.seconds / self.seconds if self.seconds else 0.0
        rates = [f"{rate:7.1f}" if rate is not None else " " * 7 for rate in (timing.gflops, timing.gbytes)]
        return f"{1e3 * timing.seconds:9.3f} {share:6.1%} {rates[0]} {rates[1]}  "

    # --- files -----------------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Profile:
        """The profile of `to_dict`'s result.  Raises ValueError for anything else."""
        if values.get("format") != FORMAT or values.get("version") != VERSION:
            got = f"{values.get('format')!r}, version {values.get('version')!r}"
            raise ValueError(f"profile: expected format {FORMAT!r}, version {VERSION}, got {got}")
        known = {key: value for key, value in values.items() if key not in ("format", "version")}
        try:
            known["timings"] = [_timing(row) for row in known["timings"]]
            profile = cls(**known)
            for part in (profile, *profile.timings):
                _check_types(part)
            if profile.ranks < 1:
                raise TypeError(f"ranks: expected 1 or more, got {profile.ranks}")
            return profile
        except (KeyError, TypeError) as error:
            raise ValueError(f"profile: {error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """The profile in a file that a Trace with a profile wrote.  Raises ValueError naming the file, or OSError."""
        what = "a file written by a profiler"
        values = read_json(path, what)
        with parsing(path, what):
            if not isinstance(values, dict) or not isinstance(values.get("profile"), dict):
                raise ValueError("it holds no profile")
            return cls.from_dict(values["profile"])


_SUMMED = ("seconds", "flops", "multiplications", "bytes")


def _timing(row: Mapping[str, Any]) -> Timing:
    parts: Sequence[Sequence[int]] = row["gradients"]
    return Timing(**{**row, "gradients": tuple((start, stop) for start, stop in parts)})


def _check_types(part: Any) -> None:
    """Raises TypeError where a field is not of the type that it is declared as."""
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
    for item in fields(part):
        kind, value = kinds.get(str(item.type)), getattr(part, item.name)
        if kind is not None and not isinstance(value, kind):
            raise TypeError(f"{item.name}: expected {item.type}, got {value!r:.100}")
        if item.type == "list[float]":
            valid = isinstance(value, list) and all(isinstance(x, (int, float)) and 0 < x < math.inf for x in value)
            if not valid:
                raise TypeError(f"{item.name}: expected a list of seconds above 0, got {value!r:.100}")
