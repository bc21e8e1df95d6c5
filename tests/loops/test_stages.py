"""A recording is cut where a variable changes; each stage becomes graphs of what somebody wants of it."""

import numpy as np

import pydtconv as keras
from pydtconv import GradientTape, layers, ops
from pydtconv.loops import stages


def kinds(part):
    return [type(node.op).__name__ for node in part.graph.nodes]


def test_a_stage_has_the_operators_between_two_assignments_that_somebody_reads():
    variable = keras.Variable(np.array([1.0, 2.0], "float32"))
    with GradientTape() as tape:
        before = ops.sum(variable * variable)
        assert ops.exp(variable) is not None  # whose value nobody reads
        gradient = tape.gradient(before, variable)
        variable.assign_add(np.ones(2, "float32"))
        after = before + ops.sum(variable)
    recording = after.graph
    (first,) = stages.parts_of(recording, 0, [before.tensor, gradient.tensor])
    (second,) = stages.parts_of(recording, 1, [after.tensor])
    assert set(first.outputs.values()) == {before.tensor, gradient.tensor}
    assert "Activation" not in kinds(first)
    assert first.graph.loss is not None
    assert len(first.trained) == 1
    assert not first.again
    # the second stage is fed what the first one gave
    assert list(second.outputs.values()) == [after.tensor]
    assert before.tensor in second.inputs.values()
    assert second.graph.loss is None
    assert float(after) == 5 + 5
    np.testing.assert_array_equal(gradient, [2, 4])


def test_moving_averages_change_where_nobody_reads_the_result():
    """And once, where a second gradient runs the operators again."""
    layer = layers.BatchNormalization(momentum=0.5)
    x = np.array([[1.0], [3.0]], "float32")
    with GradientTape(persistent=True) as tape:
        y = layer(x, training=True)
        sums = [ops.sum(y * k) for k in (1.0, 2.0)]
    gradients = [tape.gradient(each, layer.beta) for each in sums]
    recording = y.graph
    parts = stages.parts_of(recording, 0, [each.tensor for each in gradients])
    assert [part.again for part in parts] == [False, True]
    momenta = [node.op.momentum for part in parts for node in part.graph.nodes if type(node.op).__name__ == "BatchNorm"]
    assert momenta == [0.5, 1.0]
    np.testing.assert_allclose([np.asarray(each)[0] for each in gradients], [2, 4], rtol=1e-6)
    np.testing.assert_allclose(layer.moving_mean, [1.0])
