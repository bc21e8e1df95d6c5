"""Casts stand where an operator cannot do without them, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.graph.ir.variable import Variable
from pydtconv.ops.base import Spec

BF16 = ops.Cast("bfloat16")


def kinds(graph: Graph) -> list[str]:
    return [node.op.name for node in build_plan(graph).graph.nodes]


def run(graph: Graph, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    return Executor(build_plan(graph), Memory()).run(inputs)


def test_an_operator_without_a_kernel_computes_in_float32():
    graph = Graph()
    with graph:
        x = graph.input("x", Spec((2, 3)))
        narrow = BF16(x)
        y = ops.Softmax()(ops.Activation("relu")(narrow))
        graph.outputs = {"y": ops.cast(y, "float32")}
        assert y.dtype == "bfloat16"
    # the input is rounded as it is fed, and the result not at all
    assert kinds(graph) == ["relu", "cast", "softmax"]


def test_values_are_rounded_where_they_are_stored():
    graph = Graph()
    with graph:
        x = graph.input("x", Spec((2,)))
        graph.outputs = {"y": ops.cast(BF16(x) + BF16(x) * 0.5, "float32"), "x": x}
    found = run(graph, x=np.array([1 + 2**-8 + 2**-12, 3], "float32"))
    np.testing.assert_array_equal(found["y"], [1.515625, 4.5])  # 1.0078125 + 0.50390625 is a tie: to the even one
    np.testing.assert_array_equal(found["x"], np.array([1 + 2**-8 + 2**-12, 3], "float32"))


def test_rounding_that_was_asked_for_stays():
    graph = Graph()
    with graph:
        x = graph.input("x", Spec((1,)))
        graph.outputs = {"y": ops.cast(BF16(ops.cast(x, "float64")), "float64"), "z": ops.cast(BF16(x), "float32")}
    found = run(graph, x=np.array([1 + 2**-12], "float32"))
    assert found["y"] == found["z"] == 1


def test_casts_of_one_tensor_are_one():
    graph = Graph()
    with graph:
        x = ops.Activation("tanh")(graph.input("x", Spec((4, 3))))
        graph.outputs = {"y": ops.cast(ops.Activation("relu")(BF16(x)) + BF16(x), "float32"), "x": x}
    assert kinds(graph) == ["tanh", "cast", "relu", "add", "cast"]


def test_variables_are_read_as_what_they_meet():
    scale = Variable(np.array([3.0], "float32"))
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((4, 1)))
        y = BF16(x) * graph.parameter(scale)
        assert y.dtype == "bfloat16"
        assert (y + x).dtype == "float32"  # as NumPy's promotion has it
        graph.loss = ops.cast(ops.sum(y), "float32")
        graph.outputs = {"loss": graph.loss}
    memory = Memory()
    Executor(build_plan(graph), memory).run({"x": np.array([[1], [2], [3], [4]], "float32")})
    gradient = memory.store.gradient_of(scale)
    assert gradient.dtype == np.float32
    assert gradient == [10]


def test_parameters_stay_float32():
    gamma, state = Variable(np.ones(3, "float32")), [Variable(np.ones(3, "float32"), trainable=False) for _ in range(2)]
    graph = Graph(training=True)
    with graph:
        x = BF16(graph.input("x", Spec((4, 3))))
        y = ops.BatchNorm(center=False)(x, gamma, *state)
        graph.outputs = {"y": ops.cast(y, "float32")}
        with pytest.raises(ValueError, match=r"BatchNorm: gamma must have shape .* and dtype float32 because x has"):
            ops.BatchNorm(center=False).infer(x.spec, x.spec, x.spec, x.spec)
    assert kinds(graph) == ["batchnorm", "cast"]


def test_gradients_of_a_tensor_read_twice_are_added_in_bfloat16():
    w = Variable(np.array([[1.0, 2], [3, 4]], "float32"))
    graph = Graph(training=True)
    with graph:
        x = BF16(graph.input("x", Spec((2, 2))) * graph.parameter(w))
        read = [ops.Transpose((1, 0))(x), ops.Slice((0, 0), (1, 2))(x), ops.Max()(x), x]
        graph.loss = ops.cast(sum((ops.sum(each) for each in read[1:]), ops.sum(read[0])), "float32")
        graph.outputs = {"loss": graph.loss}
    memory = Memory()
    Executor(build_plan(graph), memory).run({"x": np.ones((2, 2), "float32")})
    np.testing.assert_array_equal(memory.store.gradient_of(w), [[3, 3], [2, 3]])


def test_arrays_of_bfloat16_are_taken_and_given():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1, 2.5], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(ops.relu(x), np.array([1, 2.5], "float32"))
    given = ops.cast(np.array([1 + 2**-9, np.nan, -np.inf]), "bfloat16")
    assert given.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(given.astype("float32"), np.array([1, np.nan, -np.inf], "float32"))


def test_scores_of_a_loss_are_written_in_float32():
    w, b = Variable(np.ones((3, 2), "float32")), Variable(np.zeros(2, "float32"))
    graph = Graph(training=True)
    with graph:
        x = BF16(graph.input("x", Spec((4, 3))))
        scores = ops.Bias()(ops.Dense()(x, w), b)
        loss = ops.CrossEntropy("sparse", from_logits=True)(
            ops.cast(scores, "float32"), graph.input("y", Spec((4,), "int32"))
        )
        graph.loss = graph.outputs["loss"] = ops.WeightedMean()(loss)
    memory = Memory()
    executor = Executor(build_plan(graph), memory)
    assert [node.op.name for node in graph.nodes] == ["dense", "crossentropy", "weightedmean"]
    given = np.array([[1, 2, 3]] * 4) * (1 + 2**-8)
    found = executor.run({"x": given, "y": np.array([0, 1, 1, 1])})
    np.testing.assert_allclose(found["loss"], np.log(2), rtol=1e-6)
    rounded = np.array([1, 2, 3 + 2**-6])  # 1 and 2: ties to even
    gradient = memory.store.gradient_of(w)
    np.testing.assert_allclose(gradient, np.outer(rounded, [0.25, -0.25]), rtol=1e-6)
    np.testing.assert_allclose(memory.store.gradient_of(b), [0.25, -0.25], rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (("bfloat16", "float64"), ("float64", "float64")),
        (("bfloat16", "float32"), ("float32", "float32")),
        (("bfloat16", "bfloat16"), ("float32", "float32")),
        (("bfloat16", "int32"), ("float32", "int32")),
    ],
)
def test_functions_of_numpy_read_the_widest_dtype_that_they_are_given(given, read):
    graph = Graph()
    with graph:
        x, y = (graph.input(name, Spec((3,), dtype)) for name, dtype in zip("xy", given, strict=True))
        graph.outputs = {"z": ops.arctan2(x, y)}
    node = next(node for node in graph.nodes if node.op.name == "arctan2")
    assert tuple(tensor.dtype for tensor in node.inputs) == read


def test_casts_that_lose_something_stay():
    graph = Graph()
    with graph:
        x = graph.input("x", Spec((2,)))
        graph.outputs = {
            "whole": ops.cast(ops.cast(x, "int32"), "float32"),
            "wide": ops.cast(ops.cast(ops.cast(x, "float64"), "float32"), "float64"),
            "mixed": ops.cast(BF16(x), "float32"),
        }
    found = run(graph, x=np.array([1.75, -2.5], "float32"))
    np.testing.assert_array_equal(found["whole"], [1, -2])
    np.testing.assert_array_equal(found["mixed"], [1.75, -2.5])


def test_casts_of_state_are_those_of_its_values_then():
    gamma, state = Variable(np.ones(1, "float32")), [Variable(np.ones(1, "float32"), trainable=False) for _ in range(2)]
    graph = Graph(training=True)
    with graph:
        x = BF16(graph.input("x", Spec((2, 1))))
        before = x * graph.parameter(state[0])
        y = ops.BatchNorm(center=False, momentum=0.5)(x, gamma, *state)
        after = x * graph.parameter(state[0])
        graph.outputs = {name: ops.cast(z, "float32") for name, z in (("before", before), ("y", y), ("after", after))}
    found = run(graph, x=np.array([[2], [4]], "float32"))
    np.testing.assert_array_equal(found["before"], [[2], [4]])
    np.testing.assert_array_equal(found["after"], [[4], [8]])  # times (1 + 3) / 2


def test_gradients_of_a_variable_read_many_times_are_added_in_float32():
    w = Variable(np.ones(2, "float32"))
    graph = Graph(training=True)
    with graph:
        x = BF16(graph.input("x", Spec((5, 2))))
        parts = [ops.cast(x[i] * graph.parameter(w), "float32") for i in range(5)]
        graph.loss = graph.outputs["loss"] = ops.sum(ops.Add()(*parts))
    memory = Memory()
    Executor(build_plan(graph), memory).run({"x": np.array([[256.0, 512]] + [[1, 1]] * 4, "float32")})
    np.testing.assert_array_equal(memory.store.gradient_of(w), [260, 516])  # 256 + 1 is no bfloat16


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_integers_are_fed_as_such(dtype):
    graph = Graph()
    with graph:
        graph.outputs = {"y": ops.cast(BF16(graph.input("x", Spec((3,), dtype))), "float32")}
    fed = np.array([1.75, 0, 7.25], "float32")
    np.testing.assert_array_equal(run(graph, x=fed)["y"], fed.astype(dtype).astype("float32"))
