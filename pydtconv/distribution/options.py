"""How data parallelism works: the options of `DataParallel` beyond Keras's."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True)
class Options:
    """See DataParallel."""

    auto_shard_dataset: bool = True
    bucket_size: float = 4.0
    overlap: bool = True
    check_gradients: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.bucket_size, bool) or not self.bucket_size > 0:
            raise ValueError(f"bucket_size: expected MiB, a number above 0, got {self.bucket_size!r}")

    @property
    def bucket_bytes(self) -> int:
        return int(self.bucket_size * _MIB)
