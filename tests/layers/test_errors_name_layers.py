"""Errors of calls name the layer, and show None where the extent of the batch is not known."""

import numpy as np
import pytest

from pydtconv import Input, Layer, Model, Sequential, layers, ops


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: layers.Conv2D(4, 5, name="mine"), (3, 3, 1)),
        (lambda: layers.Conv1D(4, 5, name="mine"), (3, 1)),
        (lambda: layers.DepthwiseConv2D(5, name="mine"), (3, 3, 1)),
        (lambda: layers.SeparableConv2D(4, 5, name="mine"), (3, 3, 1)),
        (lambda: layers.MaxPooling2D(5, name="mine"), (3, 3, 1)),
        (lambda: layers.Lambda(lambda x: ops.matmul(x, np.ones((7, 2))), name="mine"), (3,)),
    ],
)
def test_what_does_not_fit_names_the_layer(make, shape):
    with pytest.raises(ValueError, match="'mine'") as symbolic:
        make()(Input(shape))
    assert "331" not in str(symbolic.value)
    with pytest.raises(ValueError, match="'mine'"):
        make()(np.ones((2, *shape), "float32"))
    model = Sequential([make()])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="'mine'"):
        model.fit(np.ones((2, *shape)), np.ones((2, 1)), verbose=0)


@pytest.mark.parametrize("make", [layers.Add, layers.Multiply, layers.Concatenate, layers.Subtract])
def test_an_unknown_batch_is_none(make):
    with pytest.raises(ValueError, match=r"\(None, 3, 2\).*\(None, 4, 2\)"):
        make()([Input((3, 2)), Input((4, 2))])
    with pytest.raises(ValueError, match=r"\(331, 3, 2\).*\(331, 4, 2\)"):
        make()([Input((3, 2), batch_size=331), Input((4, 2), batch_size=331)])


def test_operators_show_none_too():
    with pytest.raises(ValueError, match=r"\(None, 3, 4\).*\(None, 5, 4\)"):
        ops.add(Input((3, 4)), Input((5, 4)))


class Picky(Layer):
    def call(self, x):
        raise self.kind("no")


class Own(ValueError):
    pass


def test_the_innermost_layer_is_named_and_other_errors_are_left_alone():
    layer = Picky(name="inner")
    layer.kind = ValueError
    with pytest.raises(ValueError, match=r"^Picky 'inner': no$"):
        Sequential([layer], name="outer")(np.ones((2, 3)))
    layer = Picky(name="inner")
    layer.kind = Own
    with pytest.raises(Own, match=r"^no$"):
        layer(np.ones((2, 3)))


class Sum(Layer):
    def build(self, a_shape):
        self.w = self.add_weight((1,))

    def call(self, a, b):
        return (a + b) * self.w


@pytest.mark.parametrize("given", [3.0, "x"])
@pytest.mark.parametrize(
    "make",
    [
        layers.BatchNormalization,
        layers.PReLU,
        lambda name: layers.TimeDistributed(layers.Dense(2), name=name),
        lambda name: Sequential([layers.Dense(2)], name=name),
    ],
)
def test_what_has_no_shape(make, given):
    with pytest.raises(ValueError, match=f"^[A-Za-z]* 'mine': expected a tensor, got {given!r}"):
        make(name="mine")(given)


def test_errors_of_a_build_stay_what_they_are():
    class Broken(Layer):
        def build(self, input_shape):
            raise TypeError("own words")

        def call(self, inputs):
            return inputs

    with pytest.raises(TypeError, match="own words"):
        Broken()(np.ones((2, 3), "float32"))


@pytest.mark.parametrize("x", [np.ones((2, 3, 4), "float32"), Input((3, 4))], ids=["array", "symbol"])
def test_arguments_that_are_missing_or_none(x):
    for make, arguments, told in [
        (layers.Dense, (), "Dense 'mine': missing argument 'inputs'"),
        (layers.MultiHeadAttention, (x,), "MultiHeadAttention 'mine': missing argument 'value'"),
        (Sum, (x,), "Sum 'mine': missing argument 'b'"),
    ]:
        with pytest.raises(TypeError, match=f"^{told}$"):
            make(*[2] * (make is not Sum), *[4] * (make is layers.MultiHeadAttention), name="mine")(*arguments)
    dense = layers.Dense(3, name="mine")
    for _ in range(2):  # before it is built, and after that
        with pytest.raises(ValueError, match=r"^Dense 'mine': inputs: expected a tensor, got None$"):
            dense(None)
        dense(x)
    attention = layers.MultiHeadAttention(2, 4, name="mine")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^MultiHeadAttention 'mine': value: expected a tensor, got None$"):
            attention(x[None], None)
        attention(x[None], x[None])
    with pytest.raises(ValueError, match=r"^Add 'mine': expected a list of tensors, got .*None"):
        layers.Add(name="mine")([x, None])
    with pytest.raises(ValueError, match=r"^Sum 'mine': expected a tensor or numbers, got None$"):
        Sum(name="mine")(x, None)
    inputs = Input((3,), name="x")
    with pytest.raises(ValueError, match=r"input 'x': expected a tensor, got None"):
        Model(inputs, layers.ReLU()(inputs))(None)


@pytest.mark.parametrize("arguments", [((2.5,),), ((2.0,),), ((3, "a"),), ((2,), 2.0), ((2,), "2")], ids=repr)
def test_extents_that_are_no_integers(arguments):
    with pytest.raises(ValueError, match="expected integers of 1 or more, or None, got"):
        Input(*arguments)
    assert layers.Dense(2, input_shape=3)._pydt_input_shape_arg == (3,)
