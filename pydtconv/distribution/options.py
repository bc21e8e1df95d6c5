"""How data parallelism works: the options of `DataParallel` beyond Keras's."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 << 20
#: MiB
DEFAULT_BUCKET = 4.0


@dataclass(frozen=True)
class Options:
    """See DataParallel."""

    auto_shard_dataset: bool = True
    bucket_size: float | str = DEFAULT_BUCKET
    overlap: bool = True
    check_gradients: bool = False
    wire: str = "float32"
    shared_memory: bool = True
    shard: str | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.bucket_size, (int, float)) and not isinstance(self.bucket_size, bool)
        if not (number and self.bucket_size > 0) and self.bucket_size != "tune":  # type: ignore[operator]
            raise ValueError(f"bucket_size: expected MiB, a number above 0, or 'tune', got {self.bucket_size!r}")
        for name in ("auto_shard_dataset", "overlap", "check_gradients", "shared_memory"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: expected True or False, got {getattr(self, name)!r}")
        if self.wire not in ("float32", "bfloat16"):
            raise ValueError(f"wire: expected 'float32' or 'bfloat16', got {self.wire!r}")
        if self.shard not in (None, "optimizer", "gradients"):
            raise ValueError(f"shard: expected 'optimizer', 'gradients' or None, got {self.shard!r}")
        if self.shard and self.bucket_size == "tune":
            raise ValueError("bucket_size: expected MiB with shard, whose shards stay where they are, got 'tune'")

    @property
    def releases(self) -> bool:
        """Whether a process gives the memory of gradients back that others have the sums of."""
        return self.shard == "gradients"

    @property
    def bucket_bytes(self) -> int:
        """Of a bucket, at first where it is tuned."""
        return int((DEFAULT_BUCKET if isinstance(self.bucket_size, str) else self.bucket_size) * _MIB)
