"""Measures loss and accuracy of trained weights on the test part of a data set.

pydtconv evaluate --model resnet20 --dataset cifar10 --weights resnet20.weights.h5
"""

from __future__ import annotations

from typing import Any

from pydtconv.cli import data, networks, processes
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser

SUMMARY = "measure trained weights on test data"


def add_arguments(parser: Parser) -> None:
    networks.add_model(parser)
    networks.add_weights(parser)
    networks.add_variant(parser)
    networks.add_precision(parser)
    data.add_arguments(parser)
    networks.add_device(parser)
    processes.add_arguments(parser, gradients=False)


def run(args: Any) -> int:
    if args.weights is None:
        raise CommandError("--weights: expected the file that `pydtconv train` has written")
    processes.start(args)
    networks.prepare(args)
    networks.use_device(args)
    found = data.load(args, training=False)
    model = networks.scaled(networks.build(args, found.shape, found.classes), found.shape)
    model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    if args.data:
        loss, accuracy = model.evaluate(found.test)
    else:
        loss, accuracy = model.evaluate(*found.test, batch_size=args.batch_size)
    print(f"test loss {loss:.4f}, test accuracy {accuracy:.4f}")
    return 0
