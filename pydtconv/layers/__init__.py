"""Layers, by Keras's names."""

from pydtconv.layers.activation import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from pydtconv.layers.convolution import Conv1D, Conv2D, Convolution1D, Convolution2D
from pydtconv.layers.dense import Dense
from pydtconv.layers.input_layer import Input, InputLayer
from pydtconv.layers.input_spec import InputSpec
from pydtconv.layers.layer import Layer
from pydtconv.layers.normalization import BatchNormalization, LayerNormalization
from pydtconv.layers.pooling import (
    AveragePooling2D,
    AvgPool2D,
    GlobalAveragePooling2D,
    GlobalAvgPool2D,
    GlobalMaxPool2D,
    GlobalMaxPooling2D,
    MaxPool2D,
    MaxPooling2D,
)
from pydtconv.layers.regularization import ActivityRegularization, Dropout, GaussianNoise, SpatialDropout2D
from pydtconv.layers.reshaping import (
    Cropping2D,
    Flatten,
    Permute,
    RepeatVector,
    Reshape,
    UpSampling2D,
    ZeroPadding2D,
)
from pydtconv.saving.serialization import deserialize_keras_object as deserialize
from pydtconv.saving.serialization import serialize_keras_object as serialize

__all__ = [
    "Activation",
    "ActivityRegularization",
    "AveragePooling2D",
    "AvgPool2D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Convolution1D",
    "Convolution2D",
    "Cropping2D",
    "Dense",
    "Dropout",
    "ELU",
    "Flatten",
    "GaussianNoise",
    "GlobalAveragePooling2D",
    "GlobalAvgPool2D",
    "GlobalMaxPool2D",
    "GlobalMaxPooling2D",
    "Input",
    "InputLayer",
    "InputSpec",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "MaxPool2D",
    "MaxPooling2D",
    "PReLU",
    "Permute",
    "ReLU",
    "RepeatVector",
    "Reshape",
    "Softmax",
    "SpatialDropout2D",
    "UpSampling2D",
    "ZeroPadding2D",
    "deserialize",
    "serialize",
]
