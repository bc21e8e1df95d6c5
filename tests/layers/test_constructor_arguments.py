"""Every layer with every argument of its constructor at a value that is not its default, beside Keras's."""

import inspect
import json

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from pydtconv.layers.preprocessing.image_data import ImageLayer
from tests.layers.test_against_keras import CASES, KERAS_NAMES, SEPARATE
from tests.real_keras import import_keras

#: no layers, or layers that hold code or others; aliases are the classes that they name
LEFT_OUT = {
    "InputSpec", "Layer", "NumpyLayer", "InputLayer", "Lambda", "Pipeline", "Wrapper", "TimeDistributed",
    "SpectralNormalization", "GroupQueryAttention", "RNN", "Bidirectional", "StackedRNNCells", "SimpleRNNCell",
    "LSTMCell", "GRUCell", "TextVectorization",
}  # fmt: skip
LAYERS = {
    name: cls
    for name, cls in ((name, getattr(layers, name)) for name in sorted(layers.__all__))
    if inspect.isclass(cls) and name not in LEFT_OUT and cls.__name__ == name
}
PICTURES, INDICES, WAVES = ((2, 8, 8, 3),), ((2, 5),), ((2, 400),)
WORDS = ["a", "b", "c"]
#: arguments and shapes of inputs of layers that are not in CASES
MORE = {
    "ActivityRegularization": ({}, ((3, 4),)), "AlphaDropout": ({"rate": 0.5}, ((3, 4),)),
    **{name: ({"units": 3}, ((2, 5, 4),)) for name in ("SimpleRNN", "LSTM", "GRU")},
    **{f"ConvLSTM{n}D": ({"filters": 2, "kernel_size": 3}, ((2, 3, *[8] * n, 2),)) for n in (1, 2, 3)},
    "CategoryEncoding": ({"num_tokens": 6}, INDICES), "Discretization": ({"bin_boundaries": [1.0, 3.0]}, INDICES),
    "Embedding": ({"input_dim": 6, "output_dim": 3}, INDICES), "GaussianDropout": ({"rate": 0.5}, ((3, 4),)),
    "HashedCrossing": ({"num_bins": 5}, ((2,), (2,))), "Hashing": ({"num_bins": 5}, INDICES),
    "IntegerLookup": ({"vocabulary": [1, 2, 3]}, INDICES), "StringLookup": ({"vocabulary": WORDS}, INDICES),
    "MaxNumBoundingBoxes": ({"max_number": 3}, PICTURES), "MelSpectrogram": ({"fft_length": 64}, WAVES),
    "STFTSpectrogram": ({"frame_length": 32}, ((2, 400, 1),)),
    "ReversibleEmbedding": ({"input_dim": 6, "output_dim": 3}, INDICES),
    "Resizing": ({"height": 5, "width": 6}, PICTURES), "CenterCrop": ({"height": 5, "width": 6}, PICTURES),
    "RandomCrop": ({"height": 5, "width": 6}, PICTURES),
    "RandomZoom": ({"height_factor": 0.2}, PICTURES), "RandomPosterization": ({"factor": 4}, PICTURES),
    "RandomTranslation": ({"height_factor": 0.2, "width_factor": 0.3}, PICTURES),
    **{name: ({"factor": 0.3}, PICTURES) for name in (
        "RandomBrightness", "RandomContrast", "RandomHue", "RandomSaturation", "RandomSharpness", "RandomRotation",
        "RandomColorDegeneration",
    )},
}  # fmt: skip
VALUES = {
    "activation": "tanh", "use_bias": False, "trainable": False, "name": "other", "dtype": "float64", "seed": 7,
    "activity_regularizer": "l2", "value_range": (0.0, 1.0), "fill_mode": "nearest", "fill_value": 3.0,
    "interpolation": "nearest", "center": False, "scale": False, "epsilon": 0.1, "data_format": "channels_first",
    "bounding_box_format": "xyxy", "keepdims": True, "padding": "same", "strides": 3, "output_padding": 1,
    "groups": 2, "pool_size": 3,
    "depth_multiplier": 2, "dropout": 0.25, "use_gate": True, "sliding_window": 2, "flash_attention": False,
    "mask_zero": True, "axis": 1, "momentum": 0.5, "invert": True, "num_oov_indices": 2,
    "output_mode": "multi_hot", "max_tokens": 9, "synchronized": True, "noise_shape": (1, 4),
    "factor": (0.2, 0.4), "alpha": 0.5, "bins": 16, "clip_limit": 2.0, "tile_grid_size": (2, 4), "num_ops": 3,
    "num_chains": 2, "chain_depth": 2, "all_ops": False, "kernel_size": 5, "sigma": 0.5, "power_iterations": 2,
    "x_factor": 0.2, "y_factor": 0.3, "width_factor": 0.25, "brightness_factor": 0.2, "contrast_factor": 0.3,
    "saturation_factor": 0.4, "hue_factor": 0.2, "addition_factor": 0.2, "threshold_factor": 0.3,
    "antialias": True, "crop_to_aspect_ratio": True, "pad_to_aspect_ratio": True, "mode": "vertical",
    "negative_slope": 0.2, "salt": 5, "max_value": 1.5, "threshold": 0.3, "mask_value": 2, "l1": 0.1, "l2": 0.2,
    "offset": -1.0,
    "normalize": True, "use_scale": True, "score_mode": "concat", "value_dim": 4, "output_shape": (6,),
    "attention_axes": 1, "frame_step": 16, "fft_length": 64, "window": "hamming", "periodic": True,
    "scaling": "spectrum", "expand_dims": True, "sampling_rate": 8000, "num_mel_bins": 20, "min_freq": 30.0,
    "max_freq": 3000.0, "power_to_db": False, "top_db": 60.0, "mag_exp": 1.0, "min_power": 1e-5, "ref_power": 2.0,
    "sequence_stride": 100, "sequence_length": 100, "tie_weights": False, "logit_soft_cap": 4.0,
    "reverse_dtype": "float64", "shared_axes": [1, 2], "mean": [1.0, 2, 3, 4], "variance": [4.0, 3, 2, 1],
    "size": 3, "num_bins": 3, "encoding": "utf-16", "oov_token": -5, "mask_token": 0, "vocabulary_dtype": "int32",
    "rms_scaling": True, "recurrent_activation": "hard_sigmoid", "unit_forget_bias": False, "recurrent_dropout": 0.5,
    "return_sequences": True, "return_state": True, "go_backwards": True, "stateful": True, "unroll": True,
    "reset_after": False, "use_cudnn": False,
}  # fmt: skip
ENDINGS = {"initializer": "random_normal", "regularizer": "l2", "constraint": "non_neg"}
#: values of a layer's own, and what else they need
OWN = {
    ("AdditiveAttention", "use_scale"): {"use_scale": False},
    **{(name, "activation"): {"activation": "relu"} for name in ("SimpleRNN", "LSTM", "GRU")},
    **{(f"ConvLSTM{n}D", "activation"): {"activation": "relu"} for n in (1, 2, 3)},
    ("BatchNormalization", "moving_variance_initializer"): {"moving_variance_initializer": "random_uniform"},
    ("BatchNormalization", "renorm_clipping"): {"renorm": True, "renorm_clipping": {"rmax": 3.0, "rmin": 0.3}},
    ("BatchNormalization", "renorm"): {"renorm": True},
    ("BatchNormalization", "renorm_momentum"): {"renorm": True, "renorm_momentum": 0.9},
    ("CategoryEncoding", "output_mode"): {"output_mode": "count"},
    ("Conv3D", "groups"): {"groups": 2, "filters": 4},
    ("Conv1DTranspose", "dilation_rate"): {"dilation_rate": 2, "strides": 1, "output_padding": None},
    ("Conv2DTranspose", "output_padding"): {"output_padding": 1, "strides": 2},
    ("Conv3DTranspose", "output_padding"): {"output_padding": (0, 1, 1), "strides": (1, 2, 2)},
    ("Discretization", "output_mode"): {"output_mode": "one_hot"},
    ("EinsumDense", "bias_axes"): {"bias_axes": "d"},
    ("GroupNormalization", "groups"): {"groups": 4},
    ("GroupNormalization", "axis"): {"axis": 1, "groups": 3},
    ("LayerNormalization", "axis"): {"axis": [1, 2, 3]},
    ("RMSNormalization", "axis"): {"axis": [2, 3]},
    ("Concatenate", "axis"): {"axis": 2},
    ("HashedCrossing", "output_mode"): {"output_mode": "one_hot"},
    ("HashedCrossing", "dtype"): {"dtype": "int32"},
    ("Hashing", "dtype"): {"dtype": "int32"},
    ("IntegerLookup", "max_tokens"): {"max_tokens": 9, "output_mode": "multi_hot"},
    ("IntegerLookup", "idf_weights"): {"idf_weights": [0.1, 0.2, 0.3], "output_mode": "tf_idf"},
    ("MelSpectrogram", "sequence_length"): {"sequence_length": 50},
    ("MultiHeadAttention", "attention_axes"): {"attention_axes": 1},
    ("Normalization", "axis"): {"axis": (2, 3), "mean": np.ones((8, 4)).tolist(), "variance": np.ones((8, 4)).tolist()},
    ("PReLU", "shared_axes"): {"shared_axes": [1]},
    ("RandomErasing", "scale"): {"scale": (0.1, 0.2)},
    ("RandomElasticTransform", "scale"): {"scale": 0.5},
    ("RandomGrayscale", "factor"): {"factor": 0.3},
    ("RandomFlip", "mode"): {"mode": "vertical"},
    ("RandomPerspective", "scale"): {"scale": 0.5},
    ("RandomPosterization", "factor"): {"factor": (2, 5)},
    ("Resizing", "fill_value"): {"fill_value": 3.0, "pad_to_aspect_ratio": True},
    ("STFTSpectrogram", "mode"): {"mode": "real"},
    ("STFTSpectrogram", "padding"): {"padding": "same"},
    ("IntegerLookup", "pad_to_max_tokens"): {"pad_to_max_tokens": True, "max_tokens": 9, "output_mode": "count"},
    ("StringLookup", "pad_to_max_tokens"): {"pad_to_max_tokens": True, "max_tokens": 9, "output_mode": "count"},
    ("StringLookup", "mask_token"): {"mask_token": "", "vocabulary": WORDS},
    ("StringLookup", "oov_token"): {"oov_token": "?"},
    ("UpSampling2D", "interpolation"): {"interpolation": "bilinear"},
    ("Softmax", "axis"): {"axis": 1},
}
#: arguments that are refused: what they ask for is not there
REFUSED = {
    "lora_rank", "lora_alpha", "quantization_config", "gptq_unpacked_column_size", "sparse", "vocabulary_dtype",
}  # fmt: skip
#: arguments that a config does not have, in Keras neither; (layer, argument) where others have it
NOT_IN_CONFIG = {
    "weights", "flash_attention", "use_cudnn",
    ("StringLookup", "salt"), ("IntegerLookup", "salt"), ("StringLookup", "num_oov_indices"),
    ("Discretization", "num_bins"), ("ActivityRegularization", "activity_regularizer"), ("StringLookup", "idf_weights"),
    ("IntegerLookup", "oov_method"), ("IntegerLookup", "idf_weights"),
    *(("Discretization", each) for each in ("activity_regularizer", "trainable")),
    *((f"SpatialDropout{n}D", each) for n in (1, 2, 3) for each in ("activity_regularizer", "trainable")),
}  # fmt: skip


def base_of(name):
    """Arguments that a layer needs, and the shapes of its inputs."""
    if name in MORE:
        return MORE[name]
    case = next((case for case in CASES if case.name == name and "data_format" not in case.arguments), None)
    return (case.arguments, case.shapes) if case else ({}, PICTURES)


def variants_of(name):
    """(argument, arguments, shapes) for each argument of a layer at another value."""
    cls, (base, shapes) = LAYERS[name], base_of(name)
    shown = [p.name for p in inspect.signature(cls).parameters.values() if p.kind is not p.VAR_KEYWORD]
    common = ["name", "trainable", "dtype", "activity_regularizer"]
    common += ["data_format", "bounding_box_format"] if issubclass(cls, ImageLayer) else []
    for argument in dict.fromkeys([*shown, *common]):
        if argument in REFUSED | NOT_IN_CONFIG or (name, argument) in NOT_IN_CONFIG:
            continue
        ending = argument.rpartition("_")[2]
        if argument in base:
            continue  # it has a value that is not its default
        if (name, argument) in OWN:
            changed = OWN[name, argument]
        elif argument == "dilation_rate":
            changed = {"dilation_rate": 2, "strides": 1}
        else:
            changed = {argument: ENDINGS[ending] if ending in ENDINGS else VALUES[argument]}
        first = argument == "data_format" and len(shapes[0]) > 2
        yield argument, {**base, **changed}, tuple((s[0], s[-1], *s[1:-1]) for s in shapes) if first else shapes


#: in our configs alone
OURS_ALONE = {"MaxNumBoundingBoxes": {"fill_value"}, "CategoryEncoding": {"sparse"}, "RandomGrayscale": {"seed"}}
OURS_ALONE["SimpleRNN"] = {"seed", "activity_regularizer"}


def plain(value, others=None):
    """Without what differs in form alone: tuples or lists, names of registration, numbers for ranges up to them."""
    if isinstance(value, (list, tuple)):
        up_to = isinstance(others, (int, float)) and len(value) == 2 and value[1] == others and value[0] in (0, -others)
        return others if up_to else [plain(each) for each in value]
    if isinstance(value, dict):
        pairs = value.items() if others is None else ((k, v) for k, v in value.items() if k in others)
        return {k: plain(v, None if others is None else others[k]) for k, v in pairs if k != "registered_name"}
    return value


def made(name, arguments):
    """A layer of Keras, None where it needs TensorFlow."""
    keras = import_keras()
    if arguments.get("synchronized"):
        return None
    try:
        return getattr(keras.layers, KERAS_NAMES.get(name, name))(**arguments)
    except ImportError:
        return None


@pytest.mark.parametrize("name", LAYERS)
def test_config(name):
    """Each argument is in the config, from which an equal layer comes, and which is Keras's."""
    usual = LAYERS[name](**{"name": "x", **base_of(name)[0]}).get_config()
    for argument, arguments, _ in variants_of(name):
        arguments = {"name": "x", **arguments}
        config = LAYERS[name](**arguments).get_config()
        assert config[argument] != usual.get(argument), f"{argument} is not in the config"
        again = LAYERS[name].from_config(json.loads(json.dumps(config)))
        assert plain(again.get_config()) == plain(config), argument
        theirs = made(name, arguments)
        if theirs is None:
            continue
        expected, left_out = theirs.get_config(), {*OURS_ALONE.get(name, ())}
        left_out |= set() if config.get("seed") else {"seed"}
        found = {key: value for key, value in plain(config).items() if key not in left_out}
        tuples = {key for key, value in config.items() if isinstance(value, tuple) and key in expected}
        assert tuples - {"value_range"} <= {key for key, value in expected.items() if isinstance(value, tuple)}, (
            argument
        )
        assert found == {k: v for k, v in plain(expected, plain(config)).items() if k not in left_out}, argument
        ours = LAYERS[name].from_config(json.loads(json.dumps(expected)))
        assert plain(ours.get_config(), found) == found, f"{argument} of Keras's config"


@pytest.mark.parametrize("name", LAYERS)
def test_masking_is_supported_where_keras_does(name):
    arguments = base_of(name)[0]
    theirs = made(name, arguments)
    if theirs is not None:
        assert LAYERS[name](**arguments).supports_masking == theirs.supports_masking


@pytest.mark.parametrize("name", LAYERS)
def test_the_build_of_a_subclass_is_called(name):
    """Also where the layer itself has no weights to build."""
    cls = type(name, (LAYERS[name],), {"build": lambda self, *shapes, **named: None})
    assert not cls(**base_of(name)[0]).built


def weighted(model):
    """Random weights, such that no two are equal and none is below 0."""
    rng = np.random.default_rng(4)
    model.set_weights([rng.uniform(0.2, 1.5, w.shape) if w.dtype.kind == "f" else w for w in model.get_weights()])


#: layers whose inputs are no arrays of numbers, and those where Keras cannot read its own files (RandomShear), cannot
#: make a model (Equalization), gives whole images outside of training (RandomCrop), or rounds (the last)
NO_FILES = {
    "StringLookup", "HashedCrossing", "Hashing", "IntegerLookup", "MaxNumBoundingBoxes", "RandomShear", "Equalization",
    "RandomCrop", "ContrastLimitedAdaptiveHistogramEqualization",
}  # fmt: skip
#: what Keras leaves out of account, and what it knows one value of
NOT_COMPARED = {("AutoContrast", "data_format"), ("Resizing", "fill_mode")}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LAYERS if name not in NO_FILES])
@pytest.mark.filterwarnings("ignore")
def test_files_of_keras(name, tmp_path):
    """A model of all variants of a layer is a file of ours in Keras, and one of Keras's here, with the same numbers."""
    keras = import_keras()
    atol = 0.1 if name == "MelSpectrogram" else 1e-5  # of decibels
    whole = name in ("Embedding", "ReversibleEmbedding", "CategoryEncoding")
    xs, arguments_of_layers = [], []
    for argument, arguments, shapes in variants_of(name):
        if argument == "name" or (name, argument) in NOT_COMPARED or made(name, {"name": "x", **arguments}) is None:
            continue
        rng = np.random.default_rng(len(xs))
        xs.append([rng.integers(0, 6, shape) if whole else rng.uniform(0, 1, shape) for shape in shapes])
        arguments_of_layers.append({"name": f"layer_{argument}", **arguments})

    def model_of(package, cls):
        dtype = "int32" if whole else "float32"
        batches = [2 if arguments.get("stateful") else None for arguments in arguments_of_layers]
        inputs = [
            [package.Input(batch_shape=(batch, *x.shape[1:]), dtype=dtype) for x in each]
            for batch, each in zip(batches, xs, strict=True)
        ]
        outputs = []
        for each, arguments in zip(inputs, arguments_of_layers, strict=True):
            layer = cls(**arguments)
            outputs.append(layer(*each) if len(each) == 1 or name in SEPARATE else layer(each))
        return package.Model([one for each in inputs for one in each], outputs)

    ours = model_of(pydtconv, LAYERS[name])
    theirs = model_of(keras, getattr(keras.layers, KERAS_NAMES.get(name, name)))
    flat = [x for each in xs for x in each]
    for model, path, load in (
        (ours, tmp_path / "ours.keras", keras.saving.load_model),
        (theirs, tmp_path / "theirs.keras", pydtconv.saving.load_model),
    ):
        weighted(model)
        model.save(path)
        expected, found = model.predict(flat, verbose=0), load(path).predict(flat, verbose=0)
        several = isinstance(expected, list)
        for arguments, a, b in zip(
            arguments_of_layers, found if several else [found], expected if several else [expected], strict=True
        ):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), 1e-4, atol, err_msg=f"{path.stem} {arguments}")


@pytest.mark.filterwarnings("ignore")
def test_training_that_no_call_named_is_that_of_the_model(tmp_path):
    """Keras writes the default of `training` into its files; a call of ours that names it keeps it."""
    keras = import_keras()

    def model_of(package, **named):
        i = package.Input((4, 4, 3))
        y = package.layers.RandomInvert((1.0, 1.0), (0, 1))(i, **named)
        return package.Model(i, package.layers.Dropout(0.5)(y, **{k: not v for k, v in named.items()}))

    x = np.full((8, 4, 4, 3), 0.25, "float32")
    model_of(keras).save(tmp_path / "theirs.keras")
    theirs = pydtconv.saving.load_model(tmp_path / "theirs.keras")
    model_of(pydtconv, training=True).save(tmp_path / "ours.keras")
    ours = pydtconv.saving.load_model(tmp_path / "ours.keras")
    np.testing.assert_array_equal(theirs(x, training=False), x)
    assert {*np.unique(theirs(x, training=True)).tolist()} == {0.0, 1.5}
    for training in (False, True):
        np.testing.assert_array_equal(ours(x, training=training), 1 - x)
    np.testing.assert_array_equal(keras.saving.load_model(tmp_path / "ours.keras").predict(x, verbose=0), x)
