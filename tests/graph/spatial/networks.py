"""Small networks of all that cuts images in one way or another, with data, in float64."""

from __future__ import annotations

import numpy as np

import pydtconv as keras
from pydtconv import layers, losses, metrics, ops, utils


class OwnSteps(keras.Model):
    """Steps of its own: gradients of whole images, clipped by hand; predictions that an operator reads."""

    def train_step(self, data):
        x, y, weights = utils.unpack_x_y_sample_weight(data)
        with keras.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred, weights)
        gradients = tape.gradient(loss, self.trainable_variables)
        norm = ops.sqrt(sum(ops.sum(ops.square(gradient)) for gradient in gradients))
        gradients = [gradient * ops.minimum(1.0, 0.5 / norm) for gradient in gradients]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        for metric in self.metrics:
            metric.update_state(*((loss,) if metric.name == "loss" else (y, y_pred, weights)))
        return {metric.name: metric.result() for metric in self.metrics} | {"norm": norm, "last": loss}

    def predict_step(self, data):
        return ops.softmax(self(data, training=False), axis=-1)


#: the class of all networks
MODEL = keras.Model


def _compiled(inputs, outputs, loss=None, **options):
    model = MODEL(inputs, outputs)
    if loss is None:
        loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, **options)
    return model


def normalized(x):
    return layers.ReLU()(layers.BatchNormalization()(x))


def classifier(shape=(13, 11, 3)):
    """Convolutions with strides and normalization, pooling, global pooling."""
    inputs = keras.Input(shape)
    x = layers.Conv2D(4, 3, padding="same", activation="relu")(inputs)
    x = layers.MaxPooling2D(2)(normalized(x))
    x = layers.Conv2D(5, 3, strides=2, padding="same")(x)
    return _compiled(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)), metrics=["accuracy"])


def odd(shape=(67, 43, 2), padding="same"):
    """Strides of 2 and 3, dilations of 2 and 3, kernels of 2 to 5, none of which divides the sizes."""
    inputs = keras.Input(shape)
    x = layers.Conv2D(3, 5, strides=2, padding=padding, activation="relu")(inputs)
    x = layers.Conv2D(4, 3, dilation_rate=2, padding=padding)(x)
    x = layers.AveragePooling2D(3, strides=2, padding=padding)(normalized(x))
    x = layers.Conv2D(4, (3, 2), dilation_rate=3 if padding == "same" else 2, padding=padding)(x)
    x = layers.Conv2D(4, 4, strides=3, padding=padding)(x)
    return _compiled(inputs, layers.Dense(3)(layers.Flatten()(x)))


def valid():
    return odd(padding="valid")


def unet(shape=(22, 18, 2)):
    """Down and up again, with skip connections; a class for each pixel."""
    inputs = keras.Input(shape)
    first = normalized(layers.Conv2D(4, 3, padding="same")(inputs))
    x = layers.MaxPooling2D(2)(first)
    second = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D(3, strides=2, padding="same")(second)
    x = layers.Dropout(0.3)(layers.Conv2D(8, 3, padding="same", activation="relu")(x))
    x = layers.Conv2DTranspose(6, 2, strides=2, padding="same")(x)
    x = layers.Cropping2D(((0, 1), (0, 1)))(x) if x.shape[1] > second.shape[1] else x
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(layers.Concatenate()([second, x]))
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    x = layers.Conv2D(4, 3, padding="same")(layers.Concatenate()([first, x]))
    return _compiled(inputs, layers.Conv2D(3, 1)(x), metrics=["accuracy"])


def windows():
    """Every other operator that reads windows."""
    inputs = keras.Input((19, 17, 4))
    x = layers.ZeroPadding2D(((2, 1), (0, 3)))(inputs)
    x = layers.SeparableConv2D(6, 3, padding="same")(x)
    x = layers.DepthwiseConv2D(3, strides=2, depth_multiplier=2)(x)
    x = layers.Conv2DTranspose(5, 3, strides=2, padding="same")(x)
    x = layers.Conv2DTranspose(5, 4, strides=3, padding="valid", activation="relu")(x)
    x = layers.Cropping2D(((3, 5), (7, 1)))(x)
    x = layers.UpSampling2D((1, 2))(x)
    x = ops.pad(x, ((0, 0), (2, 1), (1, 3), (0, 0)), mode="reflect")
    x = layers.Conv2DTranspose(3, 2, strides=3)(layers.MaxPooling2D(3)(x))
    x = layers.AveragePooling2D(2, padding="same")(x)
    return _compiled(inputs, layers.Dense(3)(layers.GlobalMaxPooling2D()(x)))


def arithmetic():
    """Squeeze and excitation, reductions, positions that are added, normalization within a sample, reshaping."""
    inputs = keras.Input((12, 10, 3))
    x = layers.Conv2D(6, 3, padding="same", kernel_regularizer="l2", activity_regularizer="l2")(inputs)
    scale = layers.Dense(6, activation="sigmoid")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    x = layers.Multiply()([x, scale])
    x = x + ops.mean(x, axis=(1, 2), keepdims=True) - 0.1 * ops.max(x, axis=1, keepdims=True)
    x = x + ops.sum(ops.mean(x, axis=-1, keepdims=True), axis=2, keepdims=True)
    x = layers.Permute((2, 1, 3))(layers.LayerNormalization()(x))
    x = layers.Permute((2, 1, 3))(layers.GaussianNoise(0.1)(x))
    x = layers.SpatialDropout2D(0.3)(layers.Add()([x, layers.Conv2D(6, 1)(inputs)]))
    x = layers.Reshape((120, 6))(x)
    return _compiled(inputs, layers.Softmax()(layers.Dense(3)(x)), losses.SparseCategoricalCrossentropy())


def excited():
    """Squeeze and excitation of normalized images, whose statistics are of all parts."""
    inputs = keras.Input((13, 10, 3))
    x = inputs
    for activation, synchronized in (("silu", True), ("relu", False)):
        x = layers.Conv2D(8, 3, padding="same", use_bias=False)(x)
        x = layers.Activation(activation)(layers.BatchNormalization(synchronized=synchronized)(x))
        scale = layers.Conv2D(8, 1, activation="sigmoid")(layers.GlobalAveragePooling2D(keepdims=True)(x))
        x = layers.Multiply()([x, scale])
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(6, 1)(x)))
    return _compiled(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)))


def augmented():
    """Windows of images that are drawn at random; noise and dropout of each element."""
    inputs = keras.Input((14, 12, 3))
    x = layers.RandomFlip()(layers.RandomCrop(12, 10)(inputs))
    x = layers.Dropout(0.2)(layers.GaussianNoise(0.3)(x))
    x = layers.Conv2D(4, 3, activation="relu")(x)
    x = layers.Dropout(0.4)(x)
    return _compiled(inputs, layers.Dense(3)(layers.Flatten()(x)))


def weighted():
    """A mean of losses by the weights of pixels; metrics that are means of pixels, and one of their counts."""
    inputs = keras.Input((11, 9, 2))
    x = layers.Conv2D(3, 3, padding="same")(inputs)
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight")
    of_pixels = ["accuracy", metrics.MeanIoU(3, sparse_y_pred=False, name="iou")]
    return _compiled(inputs, x, loss, weighted_metrics=of_pixels)


def summed():
    """A sum of losses, and two outputs of which one is an image."""
    inputs = keras.Input((11, 9, 2))
    x = layers.Conv2D(3, 3, strides=2, padding="same")(inputs)
    outputs = {"map": layers.Conv2D(1, 3, name="map")(x), "kind": layers.Dense(3, name="kind")(layers.Flatten()(x))}
    loss = {
        "map": losses.MeanSquaredError(reduction="sum"),
        "kind": losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum"),
    }
    return _compiled(inputs, outputs, loss, metrics={"map": ["mae"], "kind": ["accuracy"]})


class Volumes(layers.Layer):
    """A convolution of three axes."""

    def __init__(self, filters, kernel, **options):
        super().__init__()
        self.filters, self.kernel, self.options = filters, kernel, options

    def build(self, shape):
        self.w = self.add_weight((*self.kernel, shape[-1], self.filters), initializer="glorot_uniform")

    def call(self, x):
        return ops.Conv(**self.options)(x, self.w)


def volume():
    """Three axes."""
    inputs = keras.Input((9, 8, 7, 2))
    x = normalized(Volumes(4, (3, 3, 3), padding="same")(inputs))
    x = Volumes(3, (2, 3, 2), strides=(1, 2, 1), padding="same")(x)
    return _compiled(inputs, layers.Dense(3)(ops.mean(x, axis=(1, 2, 3))))


def transposed(shape=(12, 9, 4)):
    """Convolutions behind transposed rows and columns, and what was columns as channels."""
    inputs = keras.Input(shape)
    x = layers.Conv2D(4, 3, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(5, 3, strides=2, padding="same")(layers.Permute((2, 1, 3))(x))
    y = layers.Permute((3, 1, 2))(layers.MaxPooling2D(2)(inputs))
    x = [layers.GlobalAveragePooling2D()(z) for z in (x, y, layers.Permute((1, 3, 2))(y))]
    return _compiled(inputs, layers.Dense(3)(layers.Concatenate()(x)))


def coinciding():
    """Filters of the shape of the images that they give, of two samples."""
    inputs = keras.Input((6, 6, 3))
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(inputs)
    y = layers.Conv2D(6, (2, 6), padding="same", use_bias=False)(x)
    y = layers.Add()([layers.Conv2D(6, (2, 6), padding="same")(y), x])
    return _compiled(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(layers.ReLU()(y))))


def attending():
    """Attention to all pixels, with dropout; what cuts images adds nodes before it."""
    inputs = keras.Input((6, 5, 3))
    x = layers.Reshape((30, 4))(layers.Conv2D(4, 3, padding="same")(inputs))
    x = layers.MultiHeadAttention(2, 3, dropout=0.3, seed=1)(x, x)
    return _compiled(inputs, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def flattened():
    """Normalization behind Flatten, where rows that were cut are channels."""
    inputs = keras.Input((7, 5, 2))
    x = layers.BatchNormalization()(layers.Flatten()(layers.Conv2D(3, 3, padding="same")(inputs)))
    return _compiled(inputs, layers.Dense(3)(x))


class OwnLoss(keras.Model):
    """A loss of parts of scalars that operators of all kinds read; a mean over samples all the same."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        squared, absolute = losses.MeanSquaredError()(y, y_pred), losses.MeanAbsoluteError()(y, y_pred)
        chosen = ops.where(squared > 0, squared, 2.0 * absolute)
        stacked = ops.sum(ops.stack([squared, absolute]) * ops.convert_to_tensor([0.5, 2.0]))
        return stacked + chosen + 2.0 * ops.stop_gradient(squared) + ops.mean(absolute) + 0.5 * squared


def of_scalars():
    inputs = keras.Input((9, 8, 2))
    model = OwnLoss(inputs, layers.Conv2D(2, 3, padding="same")(inputs))
    model.compile("sgd", losses.MeanSquaredError())
    return model


_ALL = (
    *(classifier, odd, valid, unet, windows, arithmetic, excited, augmented, weighted, summed, volume, transposed),
    *(coinciding, attending, flattened, of_scalars),
)
NETWORKS = {f.__name__: f for f in _ALL}


def made(name):
    """A function that makes the network with the same weights each time."""

    def make():
        utils.set_random_seed(3)
        return NETWORKS[name]()

    return make


def data(model, samples=2):
    """(x, y, weights) of shapes that the model's inputs and outputs have."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(samples, *model.inputs[0].shape[1:]))

    def target(output, loss):
        shape = (samples, *output.shape[1:])
        return rng.normal(size=shape) if "Squared" in type(loss).__name__ else rng.integers(0, 3, shape[:-1])

    given = model.loss if isinstance(model.loss, dict) else None
    if given is None:
        y = target(model.outputs[0], model.loss)
    else:
        names = list(given)
        y = {name: target(out, given[name]) for name, out in zip(sorted(names), sorted_outputs(model), strict=True)}
    weights = None
    if getattr(model.loss, "reduction", "") == "mean_with_sample_weight":
        weights = rng.uniform(0, 2, (samples, *model.outputs[0].shape[1:-1]))
    return x, y, weights


def sorted_outputs(model):
    by_name = dict(zip(model.output_names, model.outputs, strict=True))
    return [by_name[name] for name in sorted(by_name)]
