"""The registry: every kernel in it is run, a missing one is an error that says what is missing."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.dtypes import BFLOAT16, from_bits, to_bits
from pydtconv.graph import Graph, build_plan
from pydtconv.kernels import (
    ANY,
    DEVICES,
    Kernel,
    MissingKernelError,
    RunState,
    compute,
    find,
    lookup,
    register,
    registry,
)
from pydtconv.ops.base import Op, Spec, outputs_of, spec_of
from tests.kernels.cases import CASES
from tests.ops.harness import assert_close, finite_differences, normal
from tests.ops.runner import Options, cast, run_op

lookup.load("cpu")
#: those of the package; tests register some of their own.  Those of other devices: test_on_host.py
ENTRIES = [entry for entry in registry.entries() if entry.kernel.__module__.startswith("pydtconv.kernels.cpu")]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: f"{e.operator.__name__}-{e.device}-{e.dtype}")
def test_each_kernel_computes_what_the_operator_declares(entry):
    """In its dtype as in float64, and float64's gradient as finite differences; in bfloat16 on what that can say."""
    assert entry.operator in CASES, f"tests/kernels/cases.py: expected a case of {entry.operator.__name__}"
    for case in CASES[entry.operator]:
        check_kernel(entry, case)


def check_kernel(entry, case):
    def options(dtype="float64"):
        return Options(dtype=dtype, run=RunState(exchanger=case.exchanger))

    said = (lambda array: from_bits(to_bits(array))) if entry.dtype == BFLOAT16 else np.asarray
    op, arrays = case.operator("float64"), [np.asarray(array) for array in case.arrays]
    arrays = [cast(said(array), "float64") if array.dtype.kind == "f" else array for array in arrays]
    found = find(op, entry.device, "float32" if entry.dtype == ANY[0] else entry.dtype)
    assert type(found) is entry.kernel
    specs = outputs_of(op, *map(spec_of, arrays))
    needs = [
        case.gradient
        and array.dtype.kind == "f"
        and i not in (*op.nondifferentiable, *op.updates)
        and specs[0].dtype.startswith("float")
        for i, array in enumerate(arrays)
    ]
    dys = [cast(said(normal(*spec.shape, seed=7 + i)), "float64") for i, spec in enumerate(specs)]
    want = run_op(op, arrays, dys, needs, options())
    if entry.dtype in ("float64", *ANY):
        single = any(array.dtype == "float32" for array in want.x)  # what the runner hands over as NumPy's
        rtol, step = (5e-3, 1e-3) if single else (1e-6, 1e-5)
        finite_differences(op, arrays, dys, want.dx, options(), rtol, step)
    op = case.operator("float32" if entry.dtype == ANY[0] else entry.dtype)
    got = run_op(op, arrays, dys, needs, options("float32" if entry.dtype == ANY[0] else entry.dtype))
    for name, mine, reference in (("y", got.y, want.y), ("dx", got.dx, want.dx), ("x", got.x, want.x)):
        for i, (a, b) in enumerate(zip(mine, reference, strict=True)):
            if b is not None:
                assert_close(a, b, 0.02 if entry.dtype == BFLOAT16 else case.rtol, f"{op}: {name}[{i}]")


def test_each_case_is_of_a_kernel():
    assert set(CASES) == {entry.operator for entry in ENTRIES}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_operator_has_a_kernel_on_the_cpu(dtype):
    public = [value for value in vars(ops).values() if isinstance(value, type) and issubclass(value, Op)]
    known = {entry.operator for entry in ENTRIES if entry.device == "cpu" and entry.dtype in (dtype, *ANY)}
    assert {op for op in public if op is not Op and not op.is_view} <= known


@dataclass(frozen=True)
class Twice(Op):
    """y = 2 x."""

    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0]


@register(Twice, dtypes=("float32",))
class TwiceKernel(Kernel[Twice]):
    def forward(self, p):
        return lambda: np.multiply(p.x[0], 2, out=p.y[0])


class TwiceByAnotherName(Twice):
    pass


class Unknown(Op):
    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0]


def test_a_plan_without_a_kernel_is_not_built():
    graph = Graph()
    with graph, graph.scope("doubling"):
        graph.outputs["y"] = Twice()(graph.input("x", Spec((2, 3), "float64")))
    message = (
        r"doubling#0: operator Twice: expected a kernel for device cpu and dtype float64, got kernels for cpu float32$"
    )
    with pytest.raises(MissingKernelError, match=message):
        build_plan(graph)


def test_operators_leave_it_to_kernels_which_floating_dtypes_there_are():
    graph = Graph()
    with graph:
        graph.outputs["y"] = ops.Softmax()(graph.input("x", Spec((2, 3), "float16")))
    message = (
        "operator Softmax: expected a kernel for device cpu and dtype float16, got kernels for cpu float32, cpu float64"
    )
    with pytest.raises(MissingKernelError, match=message):
        build_plan(graph)


def test_a_plan_for_an_unknown_device_is_not_built():
    graph = Graph(device="abacus")
    with graph:
        graph.outputs["y"] = ops.Softmax()(graph.input("x", Spec((2, 3))))
    with pytest.raises(ValueError, match="device: expected one of cpu, gpu, host, got 'abacus'"):
        build_plan(graph)


def test_a_device_is_a_package_that_registers(monkeypatch):
    """What has kernels there runs, what has none says so."""
    monkeypatch.setitem(DEVICES, "abacus", ("abacus", lambda: importlib.import_module("tests.kernels.abacus")))
    graph = Graph(device="abacus")
    with graph:
        x = graph.input("x", Spec((2, 3)))
        graph.outputs["y"] = Twice()(x)
    plan = build_plan(graph)
    assert type(plan.graph.nodes[0].kernel).__module__ == "tests.kernels.abacus"
    graph.outputs["z"] = ops.Softmax()(x)
    message = "operator Softmax: expected a kernel for device abacus and dtype float32, got kernels for cpu float32"
    with pytest.raises(MissingKernelError, match=message):
        build_plan(graph)


def test_an_operator_on_arrays_without_a_kernel():
    message = "operator Unknown: expected a kernel for device cpu and dtype float32, got kernels for none"
    with pytest.raises(MissingKernelError, match=message):
        compute(Unknown(), np.ones(3, "float32"))


def test_an_operator_is_run_by_the_kernel_of_the_class_that_it_derives_from():
    assert type(find(TwiceByAnotherName(), "cpu", "float32")) is TwiceKernel
    np.testing.assert_array_equal(TwiceByAnotherName()(np.ones(3, "float32")), np.full(3, 2))


def test_a_kernel_is_registered_once():
    with pytest.raises(ValueError, match="Twice, cpu, float32: expected one, got TwiceKernel and Other"):

        @register(Twice, dtypes=("float64", "float32"))
        class Other(Kernel[Twice]):
            pass

    with pytest.raises(MissingKernelError):
        find(Twice(), "cpu", "float64")


def test_a_node_finds_its_kernel_again_where_its_operator_changes():
    graph = Graph()
    with graph:
        ops.Softmax()(graph.input("x", Spec((2, 3))))
    (node,) = graph.nodes
    first = node.kernel
    assert node.kernel is first
    node.op = ops.Softmax(0)
    assert node.kernel.op == ops.Softmax(0)


@pytest.mark.slow
def test_kernels_are_loaded_when_one_is_looked_for():
    code = (
        "import sys, numpy as np; from pydtconv import ops; import pydtconv.kernels; "
        "assert 'pydtconv.kernels.cpu' not in sys.modules; ops.Softmax()(np.ones(3)); "
        "assert 'pydtconv.kernels.cpu' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
