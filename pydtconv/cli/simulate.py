"""Predicts how data-parallel training scales, from the timings of one rank's step and the network between ranks.

  pydtconv simulate --model resnet34 --ranks 1,2,4,...,1024 --network 100Gbps:1.5us --batch-per-rank 64
  pydtconv simulate --profile step.json --ranks 1,2,4,8 --network 1Gbps:100us --ranks-per-host 4
  pydtconv simulate --model unet --mesh height=2 batch=2 --ranks-per-host 2

The step is profiled here at several batch sizes, or read from files that `pydtconv train --profile` wrote; then
the threads of that run are those of a rank.  Buckets of gradients are reduced one after the other while backward goes
on, or after it (blocking).  NETWORK is bandwidth:latency (default: 100Gbps:1.5us); two more rates may follow: at which
a rank adds (10GB/s), and at which its cores could send and receive if they did nothing else (by default they have
nothing to do with it).  A table and a picture are made of weak scaling (images per rank) and strong scaling (images
of all).

Steps take different times, and ranks wait for the slowest one: what it is expected to take is predicted from the
profiled steps.  How much reductions differ is known from a profile of several ranks (mpiexec).  Ranks of a host share
its link.  The table has the portions of an overlapped step that are lost: to this spread, to the link's bandwidth, and
to waiting for what else of communication is not hidden.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydtconv.cli import neighbours, networks, processes, training
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, mebibytes

if TYPE_CHECKING:
    from pydtconv.profiling import Profile
    from pydtconv.simulation import Prediction, Workload

SUMMARY = "predict the scaling of data-parallel training over many ranks"


def add_arguments(parser: Parser) -> None:
    networks.add_model(parser, required=False)
    networks.add_variant(parser)
    networks.add_precision(parser)
    networks.add_shape(parser)
    parser.add_argument("--profile", nargs="+", metavar="FILE", help="profiles to read, instead of --model")
    parser.add_argument("--ranks", help="numbers of ranks (default: 1,2,4,...,64)")
    parser.add_argument("--network", default="100Gbps:1.5us", help="bandwidth:latency[:addition[:processing]]")
    parser.add_argument("--batch-per-rank", type=int, default=64, help="images of a rank, weak scaling (default: 64)")
    parser.add_argument(
        "--batch", type=int, help="images of all ranks, strong scaling (default: 16 times those of one)"
    )
    parser.add_argument("--bucket-size", type=float, help="MiB of a bucket of gradients (default: 4)")
    processes.add_batchnorm(parser)
    parser.add_argument("--algorithm", help="ring, recursive_doubling, rabenseifner or best (default)")
    parser.add_argument("--threads", type=int, help="threads of a rank (default: as everywhere)")
    parser.add_argument("--steps", type=int, help="steps that are profiled at each batch size (default: 10)")
    parser.add_argument(
        "--mesh",
        nargs="+",
        type=processes.mesh_of,
        metavar="AXIS=N,...",
        help="predict these meshes, which cut images over ranks, instead: time and memory of a rank; with --model",
    )
    processes.add_columns(parser)
    parser.add_argument(
        "--ranks-per-host",
        type=int,
        metavar="N",
        help="ranks of a host, which share its link: one is profiled beside N - 1 processes that do the same; with "
        "--mesh, meshes of at most N ranks have one copy of the weights (default: 1)",
    )
    parser.add_argument(neighbours.OPTION, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--memory-limit", type=mebibytes, help="MiB, or a size such as 1GB, that a rank of a mesh may take"
    )
    parser.add_argument("--picture", help="the picture's file (default: the model's name with _scaling.png)")


def run(args: Any) -> int:
    from pydtconv.simulation import ALGORITHMS, Network, Workload, strong_scaling, weak_scaling
    from pydtconv.simulation.plot import plot_scaling

    if args.neighbour:
        return run_neighbour(args)
    if args.mesh is not None:
        return run_meshes(args)
    networks.refuse(args, ("memory_limit", "columns"), "without --mesh, of whose ranks it is")
    if args.profile is not None:
        shape = ("image_size", "channels", "classes", "variant", "dtype", "matmul_precision")
        networks.refuse(args, (*shape, "threads", "steps"), "with --profile, whose steps have been timed")
    try:
        with_defaults(args)
        check(args)
        networks.check_picture("--picture", args.picture, needed=False)
        ranks = parse_ranks(args.ranks)
        network = replace(Network.parse(args.network), ranks_per_host=args.ranks_per_host)
        workload = Workload(profiles(args))
        without = f"for {workload.model}, which has no batch normalization"
        synchronized = processes.synchronizes(args, {without: not workload.channels})
        bucket_bytes = int(args.bucket_size * 2**20)
        batch = args.batch or 16 * args.batch_per_rank
        algorithms = list(dict.fromkeys([args.algorithm, *(name for name in ALGORITHMS if name != "best")]))
        found: dict[str, list[Prediction]] = {}
        for title, scaling, images in (
            (f"weak scaling, {args.batch_per_rank} images a rank", weak_scaling, args.batch_per_rank),
            (f"strong scaling, {batch} images in all", strong_scaling, batch),
        ):
            parts = [scaling(workload, ranks, images, network, name, bucket_bytes, synchronized) for name in algorithms]
            found[title] = [prediction for part in parts for prediction in part]
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from None
    title = f"{workload.model}, {args.network}, buckets of {args.bucket_size:g} MiB, {described(workload)}"
    print(title)
    for name, predictions in found.items():
        print(f"\n{name}")
        print("\n".join(table(predictions)))
    try:
        print(f"\npicture: {plot_scaling(found, args.picture or f'{workload.model}_scaling.png', title)}")
    except ImportError as error:
        print(f"\nno picture: {error}")
    except (OSError, ValueError) as error:
        raise CommandError(f"--picture: {error}") from None
    return 0


def run_meshes(args: Any) -> int:
    """Predicts each mesh for --batch images in all, and says which is the fastest that fits."""
    from pydtconv.simulation import Network
    from pydtconv.simulation.meshes import OneRank, fastest, peak_bytes, predict_mesh

    if args.model is None or args.profile is not None:
        raise CommandError("--mesh: expected --model, whose plans are made for each mesh, got --profile or none")
    limit = None if args.memory_limit is None else int(args.memory_limit * 2**20)
    networks.refuse(args, ("ranks", "algorithm", "bucket_size", "picture"), "with --mesh, of which one table is made")
    processes.synchronizes(args, {"with --mesh: statistics are those of all ranks": True})
    try:
        with_defaults(args)
        check(args)
        network, images = Network.parse(args.network), args.batch or args.batch_per_rank
        threads = threads_of_rank(args)
        model = networks.build(args, networks.shape_of(args), args.classes)
        with neighbours.busy(words_of(args, images, threads), args.ranks_per_host - 1, threads):
            profile = measured(model, args, images)
        whole = model._pydt_training.plan
        one = OneRank.of(whole, profile)
        found = [
            predict_mesh(
                model, mesh, images, one, network, math.prod(mesh.values()) <= args.ranks_per_host, args.columns or ()
            )
            for mesh in args.mesh
        ]
        alone_bytes = peak_bytes(model, {}, images)
    except (ValueError, MemoryError) as error:
        raise CommandError(str(error)) from None
    beside = f" beside {args.ranks_per_host - 1} others" if args.ranks_per_host > 1 else ""
    alone = f"one rank of {threads} threads takes {_ms(profile.seconds)}{beside}, {alone_bytes / 2**20:.1f} MiB"
    print(f"{args.model}, {images} images, {args.network}: {alone}")
    names = " ".join(f"{name:>11}" for name in ("compute", "exchange", "all-reduce", "step", "MiB a rank"))
    print(f"{'mesh':>28} {'ranks':>6} {names}")
    for each in found:
        times = (each.compute, each.exchange, each.reduction, each.seconds)
        shown = " ".join(f"{_ms(value):>11}" for value in times)
        print(f"{each.mesh:>28} {each.ranks:6} {shown} {each.nbytes / 2**20:11.1f}")
    best = fastest(found, limit)
    within = "" if limit is None else f" within {limit / 2**20:.0f} MiB a rank"
    print(f"\nno mesh fits{within}" if best is None else f"\nfastest{within}: {best.mesh}")
    return 0


def threads_of_rank(args: Any) -> int:
    """Those of --threads, else this rank's part of the host's, which becomes the active number."""
    from pydtconv import config

    threads: int = args.threads or max(config.num_threads() // args.ranks_per_host, 1)
    config.set_num_threads(threads)
    return threads


def words_of(args: Any, images: int, threads: int) -> list[str]:
    """The options that say what is trained."""
    found = {
        "model": args.model,
        "image-size": args.image_size,
        "channels": args.channels,
        "classes": args.classes,
        "batch": images,
        "threads": threads,
        "variant": args.variant,
        "dtype": args.dtype,
        "matmul-precision": args.matmul_precision,
    }
    return [f"--{name}={value}" for name, value in found.items() if value is not None]


def run_neighbour(args: Any) -> int:
    """Trains as `measured` does until the standard input ends."""
    with_defaults(args)
    networks.prepare(args)
    threads_of_rank(args)
    model = networks.build(args, networks.shape_of(args), args.classes)
    neighbours.serve(model, *example(model, args, args.batch))
    return 0


def parse_ranks(text: str) -> list[int]:
    """The numbers of "1,2,4,...,64": the dots go on with the ratio of the numbers before them, else the difference.

    Raises ValueError for what is no such list of growing numbers.
    """
    wrong = ValueError(f"--ranks: expected growing numbers such as 1,2,4,...,64 or 1,2,3, got {text!r}")
    words = [word.strip() for word in text.split(",")]
    if words.count("...") > 1 or not all(word == "..." or re.fullmatch(r"[1-9]\d*", word) for word in words):
        raise wrong
    numbers: list[int] = []
    if "..." in words:
        at = words.index("...")
        before, after = ([int(word) for word in part] for part in (words[:at], words[at + 1 :]))
        if len(before) < 2 or len(after) < 1:
            raise wrong
        previous, last = before[-2:]
        if last <= previous:
            raise wrong
        numbers = before
        while numbers[-1] < after[0]:
            grows = last % previous == 0
            numbers.append(numbers[-1] * (last // previous) if grows else numbers[-1] + last - previous)
        if numbers.pop() != after[0]:
            raise wrong
        numbers += after
    else:
        numbers = [int(word) for word in words]
    if any(b <= a for a, b in itertools.pairwise(numbers)):
        raise wrong
    return numbers


def with_defaults(args: Any) -> None:
    """Options that were not given, after those have been refused that were and would change nothing."""
    defaults = {"ranks": "1,2,4,...,64", "bucket_size": 4.0, "algorithm": "best", "steps": 10, "ranks_per_host": 1}
    for name, value in defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)


def check(args: Any) -> None:
    """Raises ValueError for options that do not fit."""
    from pydtconv.simulation import ALGORITHMS
    from pydtconv.suggest import one_of

    if (args.model is None) == (args.profile is None):
        raise ValueError("expected --model or --profile, one of them")
    if args.model is not None:
        networks.prepare(args)
    for name in ("batch_per_rank", "batch", "steps", "threads", "ranks_per_host"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')}: expected 1 or more, got {value}")
    if not 0 < args.bucket_size < math.inf:
        raise ValueError(f"--bucket-size: expected MiB above 0, a finite number, got {args.bucket_size}")
    if args.algorithm not in ALGORITHMS:
        hint = one_of(args.algorithm, ALGORITHMS)
        raise ValueError(f"--algorithm: unknown algorithm {args.algorithm!r}{hint}")


def profiles(args: Any) -> list[Profile]:
    """Those of the files, or of this machine: at the images of a rank, an eighth of them, and one."""
    from pydtconv.profiling import Profile

    if args.profile:
        return [Profile.load(path) for path in args.profile]
    threads = threads_of_rank(args)
    sizes = sorted({1, max(args.batch_per_rank // 8, 1), args.batch_per_rank})
    model = networks.build(args, networks.shape_of(args), args.classes)
    with neighbours.busy(words_of(args, args.batch_per_rank, threads), args.ranks_per_host - 1, threads):
        return [measured(model, args, size) for size in sizes]


def measured(model: Any, args: Any, images: int) -> Profile:
    """A training step with SGD and momentum on random images."""
    from pydtconv.profiling import Profiler

    x, y = example(model, args, images)
    with Profiler(model, steps=args.steps, skip=2) as profiler:
        for _ in range(args.steps + 2):
            model.train_on_batch(x, y)
    return profiler.profile


def example(model: Any, args: Any, images: int) -> tuple[Any, Any]:
    """Random images, with a class for each image or pixel; the model is compiled for them."""
    import numpy as np

    if not model.compiled:
        optimizer = training.optimizer(training.DEFAULT_OPTIMIZER, 0.001)
        model.compile(optimizer, "sparse_categorical_crossentropy")
    model._pydt_training.memory.keeps_gradients = True  # as where they are reduced
    rng = np.random.default_rng(0)
    x = rng.standard_normal((images, *networks.shape_of(args)), np.float32)
    return x, rng.integers(0, args.classes, (images, *model.output_shape[1:-1]))


def described(workload: Workload) -> str:
    """Where the timings come from."""
    first, last = workload.profiles[0], workload.profiles[-1]
    sizes = ", ".join(str(profile.batch_size) for profile in workload.profiles)
    spread = ", ".join(
        f"{len(seconds)} {what}"
        for seconds, what in ((last.step_seconds, "steps"), (last.reduction_seconds, "reductions"))
        if seconds
    )
    return f"timings at {sizes} images on {first.threads} threads of {first.cpu}, spread of {spread or 'nothing'}"


def table(predictions: Sequence[Prediction]) -> list[str]:
    """Lines of a table: the first algorithm in full, of the others the overlapped step."""
    names = list(dict.fromkeys(p.algorithm for p in predictions))
    head = f"{'ranks':>6} {'images':>7} {'compute':>10} {'statistics':>11} {'all-reduce':>11} {'hidden':>7}"
    head += f" {'overlapped':>11} {'images/s':>10} {'efficiency':>10} {'spread':>8} {'link':>8} {'waiting':>8}"
    head += f" {'blocking':>11} {'efficiency':>10}"
    lines = [head + (f"   overlapped by {', '.join(names[1:])}" if names[1:] else "")]
    steps = {(p.ranks, p.algorithm): p for p in predictions}
    for p in (p for p in predictions if p.algorithm == names[0]):
        hidden = "" if p.hidden is None else f"{p.hidden:.0%}"
        others = "".join(f" {_ms(steps[p.ranks, name].overlapped):>11}" for name in names[1:])
        lost = " ".join(f"{round(portion, 3) + 0.0:8.1%}" for portion in p.lost.values())  # -0.0 + 0.0 is 0.0
        lines.append(
            f"{p.ranks:6} {p.images:7} {_ms(p.compute):>10} {_ms(p.statistics):>11} {_ms(p.communication):>11} "
            f"{hidden:>7} {_ms(p.overlapped):>11} {p.images_per_second:10.1f} {p.efficiency:10.1%} {lost} "
            f"{_ms(p.blocking):>11} {p.blocking_efficiency:10.1%}  {others}"
        )
    return lines


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"
