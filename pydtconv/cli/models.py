"""Lists the networks of the zoo: parameters, arithmetic of an image, and memory of a training step.

  pydtconv models                          names alone
  pydtconv models resnet18 mobilenetv2     what each of these takes
  pydtconv models "resnet*" --batch-size 8 --image-size 96

"*" names all networks, which takes a minute or more.
"""

from __future__ import annotations

import fnmatch
from typing import Any

from pydtconv.cli import training
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, whole
from pydtconv.suggest import one_of

SUMMARY = "list the networks of the zoo, and what they take"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="a network, or several as in 'resnet*'")
    parser.add_argument("--batch-size", type=whole(1), default=32, help="images in a step (default: 32)")
    parser.add_argument("--image-size", type=whole(1), help="rows and columns (default: the network's)")
    parser.add_argument("--classes", type=whole(1), help="number of classes (default: the network's)")


def run(args: Any) -> int:
    from pydtconv import applications

    known = applications.names()
    if not args.names:
        for family, names in _families().items():
            print(f"{family:20}{', '.join(names)}")
        print("\npydtconv models NAME tells what a network takes")
        return 0
    chosen = [name for pattern in args.names for name in fnmatch.filter(known, pattern.lower().replace("-", ""))]
    missing = [pattern for pattern in args.names if not fnmatch.filter(known, pattern.lower().replace("-", ""))]
    if missing:
        raise CommandError(f"no model is called {missing[0]!r}{one_of(missing[0], known)}")
    print(f"{'network':20}{'image':>16}{'parameters':>14}{'GFLOP/image':>13}{f'MiB at {args.batch_size}':>13}")
    for name in dict.fromkeys(chosen):
        print(_row(name, args), flush=True)
    return 0


def _families() -> dict[str, list[str]]:
    from pydtconv import applications

    found: dict[str, list[str]] = {}
    for name, builder in _builders(applications).items():
        found.setdefault(builder.__module__.rpartition(".")[2], []).append(name)
    return found


def _builders(applications: Any) -> dict[str, Any]:
    known = set(applications.names())
    return {name.lower(): getattr(applications, name) for name in applications.__all__ if name.lower() in known}


def _row(name: str, args: Any) -> str:
    from pydtconv import applications
    from pydtconv.profiling.work import cost_of

    builder, classes = _builders(applications)[name], {} if args.classes is None else {"classes": args.classes}
    try:
        model = None if args.image_size else builder(weights=None, **classes)
        if model is None or None in model.input_shape[1:]:
            channels = 3 if model is None else model.input_shape[-1]
            shape = (*[args.image_size or 224] * applications.axes(name), channels)
            model = builder(weights=None, input_shape=shape, **classes)
        model.compile(training.optimizer(training.DEFAULT_OPTIMIZER, 0.01), "sparse_categorical_crossentropy")
        plan, one = model.plan(args.batch_size), model.plan(1)
    except (MemoryError, ValueError) as error:
        return f"{name:20}{error}"
    image, peak = "x".join(map(str, model.input_shape[1:])), plan.peak_bytes / 2**20
    flops = sum(cost_of(step, "forward").flops for step in one.steps) / 1e9
    return f"{name:20}{image:>16}{model.count_params():>14,}{flops:>13.2f}{peak:>13,.0f}"
