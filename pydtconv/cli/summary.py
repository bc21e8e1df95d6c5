"""Prints the layers of a network of the zoo with output shapes and numbers of parameters.

pydtconv summary --model densenet121 --image-size 224 --classes 1000
"""

from __future__ import annotations

from typing import Any

from pydtconv.cli import networks
from pydtconv.cli.parser import Parser

SUMMARY = "show the layers of a network of the zoo"


def add_arguments(parser: Parser) -> None:
    networks.add_model(parser)
    networks.add_shape(parser)


def run(args: Any) -> int:
    networks.prepare(args)
    networks.build(args, networks.shape_of(args), args.classes).summary()
    return 0
