"""What each operator and each function has, as a page: kernels, ONNX, meshes, second gradients, Keras's names.

python tools/operator_table.py            prints docs/operators.md
python tools/operator_table.py --write    writes it
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydtconv import ops
from pydtconv.interchange.onnx import export_functions, export_operators, export_rearranging, export_table
from pydtconv.kernels import cpu, gpu
from pydtconv.kernels.gpu import table
from pydtconv.kernels.registry import entries
from pydtconv.loops.rules import RULES as GRADIENTS
from pydtconv.ops.operations import CARDS
from pydtconv.ops.table_op import RULES, no_gradient

PAGE = Path(__file__).parent.parent / "docs" / "operators.md"
#: the rooms that fill the tables which are read here
ROOMS = (cpu, gpu, export_operators, export_rearranging)
HEAD = """# Operators

This page lists what each operator has. The command `python tools/operator_table.py --write` makes it from the
operators' own declarations and from the tables of kernels, of ONNX and of gradients. A test compares the two.

- **CPU**, **GPU**: dtypes with a kernel. Other dtypes are refused when the plan is built, but bfloat16 on a CPU: there
  casts to float32 stand around the operator.
- **ONNX**: whether `Model.export` writes it.
- **mesh**: how it is cut where several processes share images; "whole inputs" are gathered first.
- **second gradient**: how its gradient is written in operators, which can be differentiated again: by its own
  `gradient`, or by the operators that it is made of.

A reason stands where something is missing.

| operator | CPU | GPU | ONNX | mesh | second gradient |
| --- | --- | --- | --- | --- | --- |
"""
FUNCTIONS = """
## Functions of the table

These functions of `pydtconv.ops` run NumPy in one operator, `TableOp`, on CPUs. In functional models each is the one
operation that it is in Keras. **GPU**: whether it has a kernel there, in float32 and float64.

| function | Keras's operation | GPU | ONNX | second gradient |
| --- | --- | --- | --- | --- |
"""


def operators() -> list[type[Any]]:
    """The classes of operators, by name."""
    found: set[type[Any]] = set()
    rest = [ops.Op]
    while rest:
        each = rest.pop()
        rest.extend(each.__subclasses__())
        if each.__module__.startswith("pydtconv.") and "__dataclass_fields__" in vars(each):
            found.add(each)
    known = [each for each in found if each is not ops.TableOp and (each.is_view or kernels(each, "cpu"))]
    return sorted(known, key=lambda each: each.__name__)


def kernels(op: type[Any], device: str) -> str:
    """The dtypes in which an operator has a kernel, as `lookup.find` finds it."""
    for each in op.__mro__:
        dtypes = [entry.dtype for entry in entries() if entry.device == device and entry.operator is each]
        if dtypes:
            return ", ".join(dtypes)
    return ""


def second_gradient(op: type[Any]) -> str:
    if op.__name__ in GRADIENTS or op.gradient is not None:
        return "its own"
    if op.formula is not None:
        return "made of operators"
    return str(op.lacks.get("gradient", ""))


def rows() -> Iterator[tuple[str, ...]]:
    """For each operator what it has; the reason where it has not, else ""."""
    for op in operators():
        view = "it is a view" if op.is_view else ""
        yield (
            f"`{op.__name__}`",
            view or kernels(op, "cpu"),
            view or kernels(op, "gpu") or op.lacks.get("gpu", ""),
            "yes" if export_table.row_of(op) else op.lacks.get("onnx", ""),
            op.mesh.replace("_", " "),
            second_gradient(op),
        )


def functions() -> Iterator[tuple[str, ...]]:
    """For each function of the table that is one of Keras's operations what it has."""
    for name, rule in sorted(RULES.items()):
        card = CARDS.get(name)
        if card is None:
            continue
        exported = rule.onnx or name in export_functions.ROWS
        if rule.gradient is no_gradient:
            again = "is zero"
        elif name in GRADIENTS:
            again = "its transpose" if rule.linear else "read as operators"
        else:
            again = rule.lacks or "not written"
        there = "yes" if table.is_there(name) else "no"
        yield f"`{name}`", f"`{card.module}.{card.class_name}`", there, "yes" if exported else "no", again


def page() -> str:
    lines = [" | ".join(("", *row, "")).strip() for row in rows()]
    more = [" | ".join(("", *row, "")).strip() for row in functions()]
    return HEAD + "\n".join(lines) + "\n" + FUNCTIONS + "\n".join(more) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE}")
    if parser.parse_args().write:
        PAGE.write_text(page())
    else:
        print(page())


if __name__ == "__main__":
    main()
