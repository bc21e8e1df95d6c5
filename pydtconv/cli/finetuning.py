"""The options of training that begins with weights of another task."""

from __future__ import annotations

from typing import Any

from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import whole
from pydtconv.suggest import one_of


def add_arguments(group: Any) -> None:
    group.add_argument(
        "--pretrained", metavar="FILE", help="weights of the same network; those of other classes are left new"
    )
    add_freeze(group)
    group.add_argument(
        "--head-epochs", metavar="N", type=whole(1), help="before the others, epochs in which only the classes learn"
    )


def add_freeze(group: Any) -> None:
    group.add_argument(
        "--freeze",
        metavar="DEPTH",
        help="leave the first layers as they are: a share from 0 to 1 of those with weights, or the name of the last",
    )


def check(args: Any) -> None:
    """Raises CommandError, before anything is loaded, for options that do not go together."""
    if args.pretrained and args.weights:
        raise CommandError("--pretrained and --weights: expected one of them")
    if args.head_epochs and args.checkpoint:
        raise CommandError("--head-epochs: expected no --checkpoint with it: train the head in a run of its own")
    share_of(args.freeze)


def share_of(depth: str | None) -> float | None:
    """--freeze where it is a share, None where it is the name of a layer.  Raises CommandError outside of 0 to 1."""
    try:
        share = float(depth or 0)
    except ValueError:
        return None
    if not 0 <= share <= 1:
        raise CommandError(f"--freeze: expected a share from 0 to 1, or the name of a layer, got {depth}")
    return share


def freeze(network: Any, depth: str | None) -> None:
    """Leaves the first layers as they are: those that --freeze says; None for none.

    A layer is behind another one where it is in `network.layers`.  Raises CommandError for what is no share or layer.
    """
    names = [layer.name for layer in network.layers]
    weighted = [layer for layer in network.layers if layer.variables]
    share = share_of(depth)
    if share is not None:
        frozen = {layer.name for layer in weighted[: round(share * (len(weighted) - 1))]}
    elif depth in names:
        frozen = set(names[: names.index(depth) + 1])
    else:
        raise CommandError(f"--freeze: {network.name} has no layer {depth!r}{one_of(str(depth), names)}")
    for layer in weighted:
        layer.trainable = layer.name not in frozen
