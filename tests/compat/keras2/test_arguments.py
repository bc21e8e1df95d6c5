"""Old arguments of every layer give the config of the new ones."""

import inspect
import warnings

import numpy as np
import pytest

from pydtconv import layers, regularizers
from pydtconv.compat.keras2 import arguments, merging, noticed

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

#: a value of each old argument, by its name, and what the new argument is where that is another one
VALUES = {
    "init": "normal", "W_regularizer": "l2", "b_regularizer": "l1", "W_constraint": "max_norm",
    "b_constraint": "non_neg", "bias": False, "dim_ordering": "th", "border_mode": "same", "subsample": 2,
    "subsample_length": 2, "atrous_rate": 2, "nb_filter": 5, "filter_length": 3, "output_dim": 7, "p": 0.25,
    "sigma": 0.5, "alpha": 0.2, "pool_length": 3, "stride": 2, "length": 3, "beta_init": "one", "gamma_init": "zero",
    "l": 0.3, "mode": 0, "fused": True, "virtual_batch_size": None, "adjustment": None, "trainable_weights": None,
    "dropout": 0.0, "input_length": 9, "input_dim": 4, "output_shape": (1, 2), "input_dtype": "float32",
    "nb_col": 3, "nb_row": 3, "kernel_dim1": 3, "kernel_dim2": 3, "kernel_dim3": 3,
    "padding": {"top_pad": 1, "left_pad": 2}, "inner_init": "one", "U_regularizer": "l2", "dropout_W": 0.1,
    "dropout_U": 0.2, "consume_less": "gpu", "implementation": 2, "inner_activation": "hard_sigmoid",
    "forget_bias_init": "zero",
}  # fmt: skip
#: arguments that a layer needs
NEEDED = {
    "filters": 4, "kernel_size": 3, "units": 4, "rate": 0.5, "stddev": 0.1, "input_dim": 10, "output_dim": 3,
    "shape": (3,), "pool_size": 2,
}  # fmt: skip


def needed(cls, taken):
    parameters = inspect.signature(cls.__init__).parameters.values()
    names = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    extra = ["shape"] if cls is layers.InputLayer else []
    return {name: NEEDED[name] for name in [*names, *extra] if name != "self" and name not in taken}


@pytest.mark.parametrize("name", arguments.LAYERS)
def test_old_arguments_give_the_same_config(tf, name):
    cls, rows = getattr(layers, name), arguments.LAYERS[name]
    for key, row in rows.items():
        old = (key,) if isinstance(key, str) else key
        values = [VALUES[each] for each in old]
        new = {row: values[0]} if isinstance(row, str) else row(*values)
        rest = needed(cls, {*new, *old})
        noticed.forget()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = cls(**rest, **dict(zip(old, values, strict=True)), name="x").get_config()
            again = cls(**rest, **dict(zip(old, values, strict=True)), name="x").get_config()
        assert found == again == cls(**rest, **new, name="x").get_config(), key
        assert sum(issubclass(each.category, FutureWarning) for each in told) == 1, key


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "new"),
    [
        ("Convolution2D", (8, 3, 5), {}, {"filters": 8, "kernel_size": (3, 5)}),
        (
            "Convolution2D",
            (8, 3, 3, "he_normal", "relu"),
            {"border_mode": "same", "subsample": (2, 2), "bias": False},
            {
                "filters": 8, "kernel_size": (3, 3), "kernel_initializer": "he_normal", "activation": "relu",
                "padding": "same", "strides": (2, 2), "use_bias": False,
            },
        ),
        ("Conv2D", (8, 3, 3), {"border_mode": "same"}, {"filters": 8, "kernel_size": (3, 3), "padding": "same"}),
        ("Conv2D", (8, 3, 2), {"padding": "same"}, {"filters": 8, "kernel_size": 3, "strides": 2, "padding": "same"}),
        (
            "AtrousConvolution2D", (8, 3, 3), {"atrous_rate": (2, 2)},
            {"filters": 8, "kernel_size": 3, "dilation_rate": 2},
        ),
        (
            "Convolution3D", (8, 3, 3, 3), {"dim_ordering": "tf"},
            {"filters": 8, "kernel_size": 3, "data_format": "channels_last"},
        ),
        ("Convolution1D", (8, 3), {"border_mode": "same"}, {"filters": 8, "kernel_size": 3, "padding": "same"}),
        ("Convolution2D", (8,), {"nb_row": 3, "nb_col": 4}, {"filters": 8, "kernel_size": (3, 4)}),
        (
            "Deconvolution2D", (8, 3, 3, (None, 8, 8, 8)), {"subsample": (2, 2)},
            {"filters": 8, "kernel_size": 3, "strides": 2},
        ),
        ("SeparableConvolution2D", (8, 3, 3), {}, {"filters": 8, "kernel_size": (3, 3)}),
        ("TimeDistributedDense", (8,), {}, {"units": 8}),
        ("CuDNNLSTM", (8,), {"return_sequences": True}, {"units": 8, "return_sequences": True}),
        ("CuDNNGRU", (8,), {}, {"units": 8}),
    ],
)  # fmt: skip
def test_forms_of_keras_1(tf, name, args, kwargs, new):
    from keras import layers as found

    cls = getattr(layers, merging.OLD_CLASSES.get(name, name))
    layer = getattr(found, name)(*args, **kwargs, name="x")
    assert type(layer) is cls
    assert isinstance(layer, getattr(found, name))
    assert layer.get_config() == cls(**new, name="x").get_config()


def test_every_layer_takes_shapes_of_a_batch_and_weights(tf):
    from keras.models import Sequential

    w, b = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0])
    model = Sequential([layers.Dense(2, batch_input_shape=(None, 3), weights=[w, b])])
    np.testing.assert_allclose(model.predict(np.eye(3), verbose=0), w + b)
    assert Sequential([layers.Conv1D(2, 3, input_length=8, input_dim=4)]).output_shape == (None, 6, 2)
    assert Sequential([layers.Dense(2, input_dim=4)]).output_shape == (None, 2)


def test_regularizers_constraints_and_models_take_theirs(tf):
    from keras.constraints import maxnorm
    from keras.regularizers import activity_l2, l1l2, l2

    assert l2(l=0.2).get_config() == regularizers.L2(0.2).get_config() == activity_l2(0.2).get_config()
    assert l1l2(l1=0.1, l2=0.3).get_config() == regularizers.L1L2(0.1, 0.3).get_config()
    assert maxnorm(m=3).max_value == 3
    x = tf.keras.Input((3,))
    model = tf.keras.Model(input=x, output=layers.Dense(2)(x))
    assert isinstance(model, tf.keras.models.Functional)


def test_a_changed_meaning_is_refused(tf):
    for cls, kwargs, match in (
        (layers.BatchNormalization, {"mode": 2}, "mode: expected 0, got 2"),
        (layers.Embedding, {"input_dim": 3, "output_dim": 2, "dropout": 0.5}, "expected 0"),
        (layers.Conv2D, {"filters": 3, "kernel_size": 3, "dim_ordering": "x"}, "expected 'tf', 'th' or 'default'"),
    ):
        with pytest.raises(ValueError, match=match):
            cls(**kwargs)
    with pytest.raises(TypeError, match="got both border_mode, the old name, and padding"):
        layers.Conv2D(3, 3, border_mode="same", padding="valid")


def test_a_warning_names_the_new_argument_once_at_the_line_of_the_script(tf):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            layers.Dense(output_dim=3)
    assert [str(each.message) for each in told] == ["Dense: output_dim is an old argument: write units=3"]
    assert told[0].filename == __file__


def test_merge_has_its_modes(tf):
    from keras.layers import Merge, merge

    rng = np.random.default_rng(0)
    a, b = (rng.random((2, 3)).astype("float32") for _ in range(2))
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    expected = {
        "sum": a + b, "mul": a * b, "ave": (a + b) / 2, "max": np.maximum(a, b), "concat": np.concatenate([a, b], 1),
        "dot": (a * b).sum(1, keepdims=True), "cos": ((a * b).sum(1) / norms)[:, None],
    }  # fmt: skip
    for mode, value in expected.items():
        np.testing.assert_allclose(merge([a, b], mode=mode, dot_axes=1), value, rtol=1e-5, err_msg=mode)
        np.testing.assert_allclose(Merge(mode=mode, dot_axes=1)([a, b]), value, rtol=1e-5, err_msg=mode)
    np.testing.assert_allclose(merge([a, b], mode=lambda x: x[0] - x[1]), a - b, rtol=1e-6)
    with pytest.raises(ValueError, match="mode: expected"):
        merge([a, b], mode="nonsense")
    with pytest.raises(NotImplementedError, match="a Sequential has one input"):
        Merge([1, 2], mode="sum")


def test_classes_with_a_merge_function_merge(tf):
    from keras.layers.merge import _Merge

    class Between(_Merge):
        def _merge_function(self, inputs):
            return 0.25 * inputs[0] + 0.75 * inputs[1]

    a, b = np.random.default_rng(0).random((2, 3, 4)).astype("float32")
    xs = [layers.Input((4,)), layers.Input((4,))]
    found = tf.keras.Model(xs, Between()(xs)).predict([a, b], verbose=0)
    np.testing.assert_allclose(found, 0.25 * a + 0.75 * b, rtol=1e-6)
    with pytest.raises(ValueError, match="list of two tensors"):
        Between()(xs[0])
    with pytest.raises(NotImplementedError, match="_merge_function"):
        _Merge()(xs)


def test_a_reduction_auto_is_the_mean(tf):
    from keras import losses

    y, x = np.random.default_rng(0).random((2, 6, 3))
    kinds = [getattr(losses, name) for name in dir(losses)]
    kinds = [each for each in kinds if isinstance(each, type) and issubclass(each, losses.Loss)]
    assert len(kinds) > 20
    assert {
        kind(**({"fn": abs} if "Wrapper" in kind.__name__ else {}), reduction="auto").reduction for kind in kinds
    } == {"sum_over_batch_size"}
    mean = losses.MeanSquaredError()(y, x)
    assert float(losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.AUTO)(y, x)) == float(mean)
    assert float(losses.MeanSquaredError("auto")(y, x)) == float(mean)
    with pytest.raises(ValueError, match="expected reduction to be one of"):
        losses.MeanSquaredError(reduction="else")


def test_functions_of_ops_image_take_image(tf):
    from keras import ops

    x = np.random.default_rng(0).random((2, 8, 8, 3)).astype("float32")
    calls = {
        "resize": {"size": (4, 4)},
        "extract_patches": {"size": 2},
        "rgb_to_grayscale": {},
        "affine_transform": {"transform": np.array([1, 0, 1, 0, 1, 0, 0, 0], "float32")},
    }
    for name, given in calls.items():
        function = getattr(ops.image, name)
        with pytest.warns(FutureWarning, match="image is an old argument"):
            found = function(image=x, **given)
        noticed.forget()
        np.testing.assert_array_equal(found, function(x, **given), err_msg=name)
