"""Loops whose body has a plan of its own, beside the same steps one behind the other."""

import numpy as np
import pytest

import pydtconv
from pydtconv import hooks, layers, ops
from pydtconv.graph.passes import loops
from pydtconv.graph.runtime import body
from pydtconv.graph.runtime.traced_loop import traced_loop
from pydtconv.ops.body_loop import Scan
from tests.kernels.cases import scan
from tests.ops.harness import normal

X = normal(4, 6, 3)
X[0, 4:], X[1, :2], X[2, 1:3], X[:, 3], X[3] = 0, 0, 0, 0, 0  # masked, one step in all samples


class Leaky(layers.Layer):
    """h = 0.9 h + 0.1 tanh(x W + h U), k = h k; the output is wider than each state."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.state_size, self.output_size = [units, units], 2 * units

    def build(self, input_shape):
        units = self.state_size[0]
        self.kernel = self.add_weight((input_shape[-1], units), name="kernel")
        self.recurrent = self.add_weight((units, units), name="recurrent")

    def call(self, inputs, states):
        h, k = states
        new = 0.9 * h + 0.1 * ops.tanh(ops.matmul(inputs, self.kernel) + ops.matmul(h, self.recurrent))
        return ops.concatenate([new, k], axis=-1), [new, h * k + new]


def loops_of(model, n=4):
    return [node.op for node in model.plan(batch_size=n).graph.nodes if isinstance(node.op, Scan)]


def network(masked, steps=6, **options):
    """Layers of several kinds, with all ways of their outputs."""
    pydtconv.utils.set_random_seed(2)
    inputs = pydtconv.Input((steps, 3), dtype="float64")
    x = layers.Masking(dtype="float64")(inputs) if masked else inputs
    given = {"dtype": "float64", **options}
    whole = layers.RNN([Leaky(2, dtype="float64"), layers.GRUCell(3, dtype="float64")], return_sequences=True, **given)
    y = layers.RNN(Leaky(2, dtype="float64"), go_backwards=True, return_state=True, **given)(whole(x))
    z = layers.LSTM(2, activation="gelu", return_sequences=True, zero_output_for_mask=True, **given)(x)
    z = layers.Bidirectional(layers.GRU(2, recurrent_activation="silu", **given), dtype="float64")(z)
    image = layers.Reshape((steps, 3, 1), dtype="float64")(inputs)
    image = layers.ConvLSTM1D(2, 2, padding="same", return_sequences=True, **given)(image)
    return pydtconv.Model(inputs, [*y, z, image])


def trained(model, limit=None, x=X):
    model.compile(pydtconv.optimizers.SGD(0.1), ["mse"] * len(model.outputs))
    targets = [np.ones((len(x), *shape[1:])) for shape in model.output_shape]
    model.fit(x, targets, len(x), epochs=3, verbose=0, memory_limit=limit)
    return [*model.get_weights(), *model.predict(x, verbose=0)]


@pytest.mark.parametrize("masked", [False, True])
def test_layers_as_with_their_steps_one_behind_the_other(masked):
    model = network(masked)
    assert len(loops_of(model)) == 6
    assert not loops_of(network(masked, unroll=True))
    for found, expected in zip(trained(model), trained(network(masked, unroll=True)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("options", [{}, {"backwards": True}, {"stacked": False}])
def test_operator(again, options):
    """Guarded memory, threads, accumulated gradients, finite differences."""
    op = scan(steps=5, again=again, **options)
    arrays = normal(2, 5, 4), normal(2, 3, seed=2), normal(4, 3, seed=3)

    def reference(x, h, w):
        ys = []
        for t in range(5)[:: -1 if op.backwards else 1]:
            h = np.tanh(x[:, t] @ w + h)
            ys.append(h * x[:, t, :3])
        return h, np.stack(ys[:: -1 if op.backwards else 1], 1) if op.stacked else ys[-1]

    expected = reference(*arrays)
    for found, value in zip(op(*arrays), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12)
    for found, value in zip(op.formula(*arrays), expected, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(found), value, rtol=1e-12)


def test_a_memory_limit_runs_steps_again_with_the_same_bits():
    def model():
        pydtconv.utils.set_random_seed(3)
        inputs = pydtconv.Input((64, 8))
        return pydtconv.Model(inputs, layers.RNN(Leaky(16), return_state=True)(inputs))

    x = normal(32, 64, 8).astype("float32")
    whole = model()
    expected = trained(whole, x=x)
    most = whole.plan(batch_size=32).peak_bytes
    limited = model()
    found = trained(limited, limit=int(0.7 * most), x=x)
    plan = limited.plan(batch_size=32, memory_limit=int(0.7 * most))
    assert any(node.op.again for node in plan.graph.nodes if isinstance(node.op, Scan))
    assert plan.peak_bytes <= 0.7 * most
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_other_steps_need_no_other_plan_of_the_body(monkeypatch):
    made = []
    plan = body.BodyPlan
    monkeypatch.setattr(body, "BodyPlan", lambda *given: made.append(given) or plan(*given))
    body.PLANS.clear()
    pydtconv.utils.set_random_seed(4)
    inputs = pydtconv.Input((None, 3))
    model = pydtconv.Model(inputs, layers.RNN(Leaky(5))(inputs))
    model.compile("sgd", "mse")
    for steps in (3, 7, 4, 9):
        model.train_on_batch(np.ones((2, steps, 3)), np.ones((2, 10)))
        if steps == 3:
            once = len(made)
    assert 0 < once == len(made)


def test_memory_is_in_the_plan():
    model = network(masked=False)
    plan = model.plan(batch_size=4)
    for node in plan.graph.nodes:
        if isinstance(node.op, Scan):
            kept = {s.name: s.nbytes for s in plan.storages if s.name == f"{node.name}.kept"}
            assert kept == {f"{node.name}.kept": node.op.steps * node.op.plan.kept_bytes}
    assert loops.kept_by_loops(plan.graph) == sum(op.steps * op.plan.kept_bytes for op in loops_of(model))


def unrolled(function):
    hooks.traced_loop.fill(lambda *args, **kwargs: None)
    try:
        return function()
    finally:
        hooks.traced_loop.fill(traced_loop)


W = normal(3, 3, seed=5)
LOOPS = {
    "scan": lambda x: ops.scan(lambda c, x: (ops.tanh(c @ W + x), c * x), x[0], x[1:]),
    "reversed, two states": lambda x: ops.scan(
        lambda c, x: ((c[1], c[0] + ops.sin(x)), {"y": c[0], "z": x}),
        (x[:, 1], x[:, 2]),
        ops.swapaxes(x, 0, 1),
        reverse=True,
    ),
    "scalars": lambda x: ops.scan(lambda c, x: (c * 0.5 + x, c * x), x[0, 0, 0], x[:, 0, 1]),
    "length": lambda x: ops.scan(lambda c, _: (c * 0.5, c), x, length=3),
    "no results": lambda x: ops.scan(lambda c, x: (c + x * x, None), x[0], x)[0],
    "fori_loop": lambda x: ops.fori_loop(1, 5, lambda i, v: ops.tanh(v) * ops.cast(i, "float64") + v, x),
    "inside of another": lambda x: ops.fori_loop(
        0, 2, lambda i, v: ops.scan(lambda c, y: (c * y, c), v[0], v + x[:2, 0])[1], x[:2, 0]
    ),
    "of constants": lambda x: ops.fori_loop(0, 3, lambda i, v: v * ops.exp(W[0]) + ops.matmul(x, W), x),
}


def test_while_loop_of_traced_code():
    def doubled(x, most=None):
        return ops.while_loop(
            lambda i, y: ops.sum(y) < 100.0, lambda i, y: (i + 1, y * 2.0), (np.int32(0), x), maximum_iterations=most
        )

    class Doubled(layers.Layer):
        def call(self, x, most=9):
            count, y = doubled(x, most)
            return ops.cast(count, "float32"), y

    x = np.ones((2, 3), "float32")
    layer = Doubled()
    for most, steps in ((9, 5), (3, 3)):
        count, y = layer(x, most=most)
        assert count == steps
        np.testing.assert_array_equal(y, x * 2.0**steps)
    variable = pydtconv.Variable(x)
    with pydtconv.GradientTape() as tape:
        total = ops.sum(doubled(variable * 1.0)[1])
    np.testing.assert_array_equal(tape.gradient(total, variable), 32 * x)
    inputs = pydtconv.Input((3,))
    model = pydtconv.Model(inputs, layer(inputs)[1])
    np.testing.assert_array_equal(model.predict(x, verbose=0), 32 * x)
    with pytest.raises(NotImplementedError, match="expected maximum_iterations"):
        layer(x, most=None)


@pytest.mark.parametrize("extent", [1, 2, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(extent, reverse):
    """Matrices, whose product is not commutative, and sums along another axis; a call is on many elements."""
    calls, x = [], normal(extent, 2, 2)

    def product(a, b):
        calls.append(a.shape)
        return ops.matmul(a, b)

    expected = [x[-1 if reverse else 0]]
    for each in x[::-1][1:] if reverse else x[1:]:
        expected.append(expected[-1] @ each)
    found = ops.associative_scan(product, x, reverse=reverse)
    np.testing.assert_allclose(found, np.stack(expected[::-1] if reverse else expected), rtol=1e-10)
    assert len(calls) <= 2 * np.log2(extent)
    variable = pydtconv.Variable(x, dtype="float64")
    with pydtconv.GradientTape() as tape:
        total = ops.sum(ops.square(ops.associative_scan(ops.add, variable * 1.0, reverse=reverse, axis=0)))
    sums = np.cumsum(x[::-1], 0)[::-1] if reverse else np.cumsum(x, 0)
    back = np.cumsum(sums, 0) if reverse else np.cumsum(sums[::-1], 0)[::-1]
    np.testing.assert_allclose(tape.gradient(total, variable), 2 * back, rtol=1e-10)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_traced_code(name):
    def gradients():
        x = pydtconv.Variable(X, dtype="float64")

        def total():
            return sum(ops.sum(y * y) for y in pydtconv.tree.flatten(LOOPS[name](x * 1.0)))

        with pydtconv.GradientTape() as outer:
            with pydtconv.GradientTape() as inner:
                first = total()
            slope = inner.gradient(first, x)
            second = ops.sum(slope * slope)
        return float(first), np.asarray(slope), np.asarray(outer.gradient(second, x))

    found, expected = gradients(), unrolled(gradients)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_steps_whose_code_asks_for_numbers_run_one_by_one():
    class Summed(layers.Layer):
        def call(self, x):
            return ops.fori_loop(0, 4, lambda i, v: v + [x, 2 * x, x, x][i] if i % 2 else v * 2.0, x)

    inputs = pydtconv.Input((3,))
    model = pydtconv.Model(inputs, Summed()(inputs))
    assert not loops_of(model)
    x = np.ones((2, 3), "float32")
    np.testing.assert_allclose(model.predict(x, verbose=0), ((2 * x + 2 * x) * 2 + x))


KNOWN = {0: 10.0, 2: 20.0, 3: 1.0}


@pytest.mark.parametrize(
    "step",
    [
        lambda i, v: v + KNOWN.get(i, 0.0),
        lambda i, v: v + (1.0 if i + 1 in {1, 3} else 0.0),
        lambda i, v: v * 1.5 + np.arange(4.0)[i],
        lambda i, v: v + 1.0 if i in (1, 3) else v,
    ],
)
def test_numbers_of_steps_that_code_looks_up(step):
    class Looked(layers.Layer):
        def call(self, x):
            return ops.fori_loop(0, 4, step, x)

    expected = np.zeros((2, 3))
    for i in range(4):
        expected = step(i, expected)
    np.testing.assert_allclose(Looked()(np.zeros((2, 3), "float32")), expected)


@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("float64", "float32")], ids=str)
def test_states_whose_dtype_changes_are_those_of_arrays(dtypes):
    state, x = (np.linspace(0, 5, 6).reshape(2, 3).astype(dtype) for dtype in dtypes)
    expected = ops.scan(lambda c, x: (c * 2 + x, c + x), state[0], x)
    with pydtconv.GradientTape():
        given = [pydtconv.Variable(array, dtype=array.dtype.name, trainable=False) for array in (state, x)]
        found = ops.scan(lambda c, x: (c * 2 + x, c + x), given[0][0] * 1, given[1] * 1)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype.name
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("use", [lambda seen, y: seen[0], lambda seen, y: ops.stack(seen), lambda seen, y: y + seen[0]])
def test_tensors_of_a_step_are_refused_after_the_loop(use):
    class Collecting(layers.Layer):
        def call(self, x):
            seen = []
            y = ops.scan(lambda c, x: (c + x, seen.append(c * x) or c), x[0], x)[1]
            return use(seen, y)

    with pytest.raises(ValueError, match="a tensor of one step of a loop was used after the loop"):
        Collecting()(X)
