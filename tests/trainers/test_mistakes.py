"""Common mistakes with data, labels and arguments: the error says what mends it, in the words of who makes it."""

import re

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.cli import main

X = np.zeros((6, 8, 8, 3), "float32")
Y = np.array([0, 1, 2, 0, 1, 2])
HOT = np.eye(3)[Y]
SPARSE = "sparse_categorical_crossentropy"


def network(loss="categorical_crossentropy", classes=3):
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3), name="photo"),
            layers.Conv2D(2, 3, name="conv"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(classes, "softmax", name="top"),
        ],
        name="net",
    )
    model.compile("sgd", loss)
    return model


def fit(x, y=None, loss=SPARSE, **more):
    return network(loss).fit(x, y, verbose=0, **more)


class Photos(keras.utils.PyDataset):
    """Batches of a data set."""

    def __init__(self, one_hot=False):
        super().__init__()
        self.one_hot = one_hot

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return X, HOT if self.one_hot else Y


def of_loss(name, text):
    return f"loss '{name}' of output 'top': {text}"


NUMBERS = (
    "expected y of the output's shape (6, 3), got class numbers of shape {}: "
    "use sparse_categorical_crossentropy or to_categorical(y, 3)"
)
VALUES = (
    "expected class numbers of shape (6,), got a value for each class, of shape (6, 3): "
    "use categorical_crossentropy or y.argmax(-1)"
)
BATCH = "a single sample needs a batch axis: x[None]"
LAST = "expected extent 3 on axis -1, got shape (6, 3, 8, 8); channels come last here: x.transpose(0, 2, 3, 1)"
MASK = "expected an array without a mask, got a masked one"
MASKED = np.ma.masked_equal(X, 1)

#: mistake -> (what does it, the message)
MISTAKES = {
    **{
        f"class numbers with {name}": (
            lambda name=name: fit(X, Y, name),
            of_loss(name, NUMBERS.format((6,))),
        )
        for name in ("categorical_crossentropy", "categorical_focal_crossentropy", "categorical_hinge")
    },
    "class numbers in a column": (
        lambda: fit(X, Y[:, None], "categorical_crossentropy"),
        of_loss("categorical_crossentropy", NUMBERS.format((6, 1))),
    ),
    "class numbers with a function": (lambda: keras.losses.categorical_crossentropy(Y, HOT), NUMBERS.format((6,))),
    "class numbers in evaluate": (
        lambda: network().evaluate(X, Y, verbose=0),
        of_loss("categorical_crossentropy", NUMBERS.format((6,))),
    ),
    "one-hot with sparse": (lambda: fit(X, HOT), of_loss(SPARSE, VALUES)),
    "one-hot with a sparse function": (lambda: keras.losses.sparse_categorical_crossentropy(HOT, HOT), VALUES),
    "one-hot of other classes": (
        lambda: fit(X, np.eye(4)[Y], "categorical_crossentropy"),
        of_loss("categorical_crossentropy", "expected y of 3 classes, as the output has them, got 4"),
    ),
    "more classes than outputs": (
        lambda: network(SPARSE, 2).fit(X, Y, verbose=0),
        f"y: output 'top': {SPARSE}: expected class numbers from 0 to 1, got 0 to 2: the output has 2 classes",
    ),
    "more classes in batches than outputs": (
        lambda: network(SPARSE, 2).fit(Photos(), verbose=0),
        f"y: output 'top': {SPARSE}: expected class numbers from 0 to 1, got 0 to 2: the output has 2 classes",
    ),
    "more classes in batches than outputs, one-hot": (
        lambda: network(classes=2).fit(Photos(one_hot=True), verbose=0),
        of_loss("categorical_crossentropy", "expected y of 2 classes, as the output has them, got 3"),
    ),
    "a list of images": (
        lambda: fit(list(X), Y),
        "x: expected an array for each input, got a list of 6: "
        "np.stack(x) makes one array of samples of a single shape",
    ),
    "a list of images in predict": (
        lambda: network().predict(list(X), verbose=0),
        "model 'net': expected 1 inputs, got 6; a list is of inputs, np.stack makes one array of samples",
    ),
    "channels first": (
        lambda: fit(X.transpose(0, 3, 1, 2), Y),
        f"Sequential 'net': Conv2D 'conv': input: {LAST}",
    ),
    "channels first in a call": (
        lambda: network()(X.transpose(0, 3, 1, 2)),
        f"Sequential 'net': Conv2D 'conv': input: {LAST}",
    ),
    "no batch axis": (
        lambda: network().predict(X[0], verbose=0),
        f"x: input 'photo': expected shape (n, 8, 8, 3), got (8, 8, 3); {BATCH}",
    ),
    "no batch axis in a call": (
        lambda: network()(X[0]),
        f"model 'net': input 'photo': expected shape (None, 8, 8, 3), got (8, 8, 3); {BATCH}",
    ),
    "no batch axis in a layer": (
        lambda: layers.Conv2D(2, 3, name="conv")(X[0]),
        f"Conv2D 'conv': input: expected 4 dimensions, got shape (8, 8, 3); {BATCH}",
    ),
    "masked x": (lambda: fit(MASKED, Y), f"x: {MASK}: x.filled(0), for example"),
    "masked y": (lambda: fit(X, np.ma.masked_equal(Y, 1)), f"y: {MASK}: y.filled(0), for example"),
    "masked x in a call": (lambda: network()(MASKED), f"x: {MASK}: x.filled(0), for example"),
    "lr": (lambda: keras.optimizers.SGD(lr=1), "SGD: unknown argument 'lr'; did you mean learning_rate?"),
    "momentun": (
        lambda: keras.optimizers.SGD(momentun=1),
        "SGD: unknown argument 'momentun'; did you mean momentum or ema_momentum?",
    ),
    "paddin": (lambda: layers.Conv2D(2, 3, paddin="same"), "Conv2D: unknown argument 'paddin'; did you mean padding?"),
    "epoch": (lambda: fit(X, Y, epoch=2), "fit: unknown argument 'epoch'; did you mean epochs or initial_epoch?"),
    "bs": (
        lambda: network().predict(X, bs=2),
        "predict: unknown argument 'bs'; did you mean batch_size?",
    ),
    "optimiser": (
        lambda: network().compile(optimiser="sgd"),
        "compile: unknown argument 'optimiser'; did you mean optimizer?",
    ),
    "patiance": (
        lambda: keras.callbacks.EarlyStopping(patiance=2),
        "EarlyStopping: unknown argument 'patiance'; did you mean patience?",
    ),
    "from_logit": (
        lambda: keras.losses.CategoricalCrossentropy(from_logit=True),
        "CategoricalCrossentropy: unknown argument 'from_logit'; did you mean from_logits?",
    ),
    "reductio": (
        lambda: keras.losses.MeanSquaredError(reductio="sum"),
        "MeanSquaredError: unknown argument 'reductio'; did you mean reduction?",
    ),
    "threshold": (
        lambda: keras.metrics.Precision(threshold=0.5),
        "Precision: unknown argument 'threshold'; did you mean thresholds?",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_with_what_mends_it(mistake):
    make, message = MISTAKES[mistake]
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}$"):
        make()


def test_what_the_errors_ask_for_works():
    fit(X, Y)
    fit(X, keras.utils.to_categorical(Y, 3), "categorical_crossentropy")
    fit(X, HOT.argmax(-1))
    fit(np.stack(list(X)), Y)
    fit(MASKED.filled(0), Y)
    network().predict(X[0][None], verbose=0)
    network()(X.transpose(0, 3, 1, 2).transpose(0, 2, 3, 1))


def test_pictures_of_pil_are_to_be_arrays():
    image = pytest.importorskip("PIL.Image")
    pictures = [image.fromarray(np.zeros((8, 8, 3), np.uint8))] * 6
    for make in (lambda: fit(pictures, Y), lambda: network().predict(pictures, verbose=0)):
        with pytest.raises(TypeError, match=r"pictures of PIL: np\.stack\(\[np\.asarray\(image\) for image in x\]\)$"):
            make()
    for make in (lambda: network()(pictures[0]), lambda: network().predict(pictures[0], verbose=0)):
        with pytest.raises(TypeError, match=r"^x: expected arrays, got pictures of PIL: np\.asarray\(x\)\[None\]$"):
            make()
    fit(np.stack([np.asarray(each) for each in pictures]), Y)
    network().predict(np.asarray(pictures[0])[None], verbose=0)


@pytest.mark.parametrize(("given", "meant"), [("--lr", "--learning-rate"), ("--bs", "--batch-size")])
def test_short_names_of_options(given, meant, capsys):
    with pytest.raises(SystemExit):
        main(["train", "--model", "mlp", given, "1"])
    assert f"unknown option '{given}'; did you mean {meant}?" in capsys.readouterr().err


def test_signatures_stay():
    import inspect

    assert "epochs" in inspect.signature(keras.Model.fit).parameters
    assert "patience" in inspect.signature(keras.callbacks.EarlyStopping).parameters
