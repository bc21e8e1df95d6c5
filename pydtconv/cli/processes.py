"""Commands under `mpiexec`: all processes train together, one of them writes and prints."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from pydtconv import replica
from pydtconv.cli import networks
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, number
from pydtconv.support.launcher import launched


def add_arguments(parser: Parser, gradients: bool = True, own_network: bool = False) -> None:
    """gradients: whether there are any, and the options of how they are reduced.  own_network: whether the command
    builds the network that is trained.
    """
    group = parser.add_argument_group("several processes, under mpiexec")
    group.add_argument(
        "--no-distribution", action="store_true", help="let each process train by itself instead of all together"
    )
    group.add_argument(
        "--mesh",
        metavar="AXIS=N,...",
        type=mesh_of,
        help="cut images over the processes, along height, width or depth: batch=2,height=2 (default: batch alone)",
    )
    add_columns(group)
    group.add_argument(
        "--network",
        metavar="BANDWIDTH:LATENCY",
        type=network_text,
        help="between the processes, such as 1Gbps:100us: with --mesh, convolutions share a wider halo where that pays",
    )
    if not gradients:
        return
    group.add_argument(
        "--bucket-size", type=_bucket, help="MiB of gradients that are reduced together (default: 4), or 'tune'"
    )
    group.add_argument("--blocking", action="store_true", help="reduce gradients after backward, not during it")
    group.add_argument(
        "--no-shared-memory", action="store_true", help="send gradients by MPI even between ranks of one host"
    )
    group.add_argument("--wire", choices=("float32", "bfloat16"), help="numbers that are sent (default: float32)")
    group.add_argument(
        "--shard",
        choices=("optimizer", "gradients"),
        help="each rank keeps a part of the optimizer's state alone, or of the gradients, too",
    )
    group.add_argument(
        "--check-gradients", action="store_true", help="end where a gradient is not finite, and name parameter and rank"
    )
    if own_network:
        add_batchnorm(group)


def add_columns(group: Any) -> None:
    group.add_argument(
        "--columns",
        metavar="NAME,...",
        type=_names,
        help="with --mesh: dense layers (names, or patterns as 'fc*') whose columns are cut over the processes that "
        "share samples; along an axis model=2 they alone are",
    )


def _names(text: str) -> tuple[str, ...]:
    if not all(names := text.split(",")):
        raise argparse.ArgumentTypeError(f"expected names of dense layers with commas between them, got {text!r}")
    return tuple(names)


def add_batchnorm(group: Any) -> None:
    group.add_argument(
        "--sync-batchnorm",
        action=argparse.BooleanOptionalAction,
        help="statistics of batch normalization are of the samples of all ranks, as in one process (the default), "
        "or of each rank's own",
    )


def synchronizes(args: Any, reasons: Mapping[str, bool]) -> bool:
    """What --sync-batchnorm says.  reasons: why it changes nothing, and whether that holds: then it is refused."""
    asked = args.sync_batchnorm
    for reason in (reason for reason, holds in reasons.items() if holds and asked is not None):
        raise CommandError(f"--{'' if asked else 'no-'}sync-batchnorm: changes nothing {reason}")
    return asked is not False


def synchronize(args: Any, network: Any) -> None:
    """Lets the network's batch normalization take its statistics over all processes, but for --no-sync-batchnorm.

    Raises CommandError where the option changes nothing.
    """
    from pydtconv.layers import BatchNormalization

    layers = [layer for layer in network._pydt_flatten_layers() if isinstance(layer, BatchNormalization)]
    here = replica.current()
    reasons = {
        "in one process": here.size == 1,
        "with --mesh: statistics are those of all ranks": here.partition is not None,
        f"for {network.name}, which has no batch normalization": not layers,
    }
    asked = synchronizes(args, reasons)
    for layer in layers:
        layer.synchronized = asked


def _bucket(text: str) -> float | str:
    try:
        return text if text == "tune" else number(0, above=True)(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"expected MiB above 0 or 'tune', got {text!r}") from None


def network_text(text: str) -> str:
    """The text of an option, where `Network.parse` reads it.  Raises ArgumentTypeError where not."""
    from pydtconv.support.network import Network

    try:
        Network.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("network: ")) from None
    return text


_AXES = ("batch", "depth", "height", "width", "model")


def mesh_of(text: str) -> dict[str, int]:
    """The extents by axis of "batch=2,height=2".  Raises ArgumentTypeError for what is no mesh."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equal, extent = part.partition("=")
        if name not in _AXES or name in found or not equal or not extent.isdecimal():
            break
        found[name] = int(extent)
    else:
        if min(found.values()) > 0:
            return found
    raise argparse.ArgumentTypeError(
        f"expected axes among {', '.join(_AXES)}, each with a number of processes, as batch=2,height=2, got {text!r}"
    )


def start(args: Any) -> None:
    """Under mpiexec, makes a distribution active and silences all processes but the first.

    Raises CommandError where MPI cannot be used, and where there is another number of processes than in the mesh.
    """
    size, rank = launched()
    if args.network is not None and args.mesh is None:
        raise CommandError(f"--network {args.network}: expected --mesh too, whose halos travel over it")
    if args.columns is not None and args.mesh is None:
        raise CommandError(
            f"--columns {','.join(args.columns)}: expected --mesh too, over whose processes they are cut"
        )
    if args.mesh is not None and math.prod(args.mesh.values()) != (1 if args.no_distribution else size):
        told = ",".join(f"{name}={extent}" for name, extent in args.mesh.items())
        if rank:
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until the process ends, the first one tells)
        raise CommandError(f"--mesh {told}: expected mpiexec -n {math.prod(args.mesh.values())}, got {size} processes")
    if args.no_distribution:
        networks.refuse(args, _REDUCTION, "with --no-distribution: gradients stay where they are")
    if size == 1:
        networks.refuse(args, ("check_gradients",), "in one process: gradients are looked at where they are reduced")
    if args.no_distribution:
        replica.set_current(None)
    if size == 1 or args.no_distribution:
        return
    from pydtconv import distribution

    try:
        distribution.initialize()
        if args.mesh is None:
            chosen = distribution.DataParallel(**_options(args))
        else:
            mesh = distribution.DeviceMesh(list(args.mesh.values()), list(args.mesh))
            given = {"network": args.network, "columns": args.columns or (), **_options(args)}
            chosen = distribution.SpatialParallel(mesh, **given)
        distribution.set_distribution(chosen)
    except (distribution.LaunchError, CommandError, ValueError) as error:
        if rank:
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until the process ends, the first one tells)
        raise CommandError(str(error)) from None
    if rank:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (until the process ends)


#: options of how gradients are reduced
_REDUCTION = ("bucket_size", "blocking", "no_shared_memory", "wire", "shard", "check_gradients")


def _options(args: Any) -> dict[str, Any]:
    if not hasattr(args, "wire"):
        return {}
    options: dict[str, Any] = {
        "overlap": not args.blocking,
        "check_gradients": args.check_gradients,
        "wire": args.wire or "float32",
        "shard": args.shard,
    }
    options["shared_memory"] = not args.no_shared_memory
    if args.bucket_size is not None:
        options["bucket_size"] = args.bucket_size
    return options


def say_in_turn(text: str) -> None:
    """Prints an error, on each rank a little after the one before, which ends all: one that all have is told once."""
    here = replica.current()
    if here.size > 1:
        from pydtconv.distribution.mpi.failure import pause

        pause(here.rank)
    print(text, file=sys.stderr, flush=True)


def say_once(text: str) -> None:
    """Prints an error that all processes of a launcher have, before any of them knows of the others."""
    from pydtconv.distribution.mpi.failure import pause

    _, number = launched()
    pause(number)  # the launcher ends all when one has ended
    if number == 0:
        print(text, file=sys.stderr, flush=True)


def finish(status: int) -> int:
    """The exit status; where it is an error, all other processes are ended too."""
    if status and replica.current().size > 1:
        from pydtconv.distribution.mpi import failure
        from pydtconv.distribution.mpi.launch import world

        failure.abort(world(), status)
    return status
