"""What a training is: what stands before the network, optimizer, loss and metrics.

`train` runs it; `plan` shows, `simulate` predicts and `tune` times the same.
"""

from __future__ import annotations

from typing import Any

from pydtconv.cli import networks
from pydtconv.cli.parser import Parser, mebibytes

OPTIMIZERS = {"sgd": "SGD", "momentum": "SGD", "rmsprop": "RMSprop", "adam": "Adam", "adamw": "AdamW", "nadam": "Nadam"}
DEFAULT_OPTIMIZER = "momentum"
WEIGHT_DECAY = 5e-4


def add_arguments(parser: Parser) -> None:
    """Options on which the plan of a step depends."""
    parser.add_argument(
        "--optimizer", choices=tuple(OPTIMIZERS), default=DEFAULT_OPTIMIZER, help="default: momentum (SGD, Nesterov)"
    )
    parser.add_argument("--augment", action="store_true", help="mirror and shift images in training")
    parser.add_argument("--memory-limit", type=mebibytes, help="MiB, or 1GB, that a step may take")
    networks.add_variant(parser)
    networks.add_precision(parser)
    networks.add_split(parser)
    networks.add_workspace_limit(parser)
    networks.add_device(parser)


def prepare(args: Any) -> None:
    """Makes --workspace-limit and --device active.  Raises CommandError."""
    networks.limit_workspace(args)
    networks.use_device(args)


def optimizer(name: str, rate: Any, weight_decay: float = WEIGHT_DECAY) -> Any:
    """One of OPTIMIZERS with a learning rate or a schedule of it."""
    from pydtconv import optimizers

    momentum = {"momentum": 0.9, "nesterov": True} if name == "momentum" else {}
    return getattr(optimizers, OPTIMIZERS[name])(rate, weight_decay=weight_decay, **momentum)


def compiled(network: Any, shape: networks.Shape, optimizer: Any, augment: bool = False, split: Any = None) -> Any:
    """The model that is trained: the network behind scaled images, with optimizer, loss and metrics."""
    model = networks.scaled(network, shape, flip=augment, shift=augment)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], split=split)
    return model
