"""Layers, by Keras's names."""

from pydtconv.layers.activation import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from pydtconv.layers.convolution import Conv1D, Conv2D, Convolution1D, Convolution2D
from pydtconv.layers.convolution_transpose import Conv2DTranspose, Convolution2DTranspose
from pydtconv.layers.core import Identity, Lambda
from pydtconv.layers.dense import Dense
from pydtconv.layers.depthwise import DepthwiseConv2D, SeparableConv2D, SeparableConvolution2D
from pydtconv.layers.input_layer import Input, InputLayer
from pydtconv.layers.input_spec import InputSpec
from pydtconv.layers.layer import Layer
from pydtconv.layers.merging import (
    Add,
    Average,
    Concatenate,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
    add,
    average,
    concatenate,
    maximum,
    minimum,
    multiply,
    subtract,
)
from pydtconv.layers.normalization import BatchNormalization, LayerNormalization
from pydtconv.layers.numpy_layer import NumpyLayer
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
from pydtconv.layers.preprocessing import CenterCrop, Normalization, RandomCrop, RandomFlip, Rescaling
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
from pydtconv.serialization.objects import deserialize_keras_object as deserialize
from pydtconv.serialization.objects import serialize_keras_object as serialize

__all__ = [
    "ELU",
    "Activation",
    "ActivityRegularization",
    "Add",
    "Average",
    "AveragePooling2D",
    "AvgPool2D",
    "BatchNormalization",
    "CenterCrop",
    "Concatenate",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Convolution1D",
    "Convolution2D",
    "Convolution2DTranspose",
    "Cropping2D",
    "Dense",
    "DepthwiseConv2D",
    "Dropout",
    "Flatten",
    "GaussianNoise",
    "GlobalAveragePooling2D",
    "GlobalAvgPool2D",
    "GlobalMaxPool2D",
    "GlobalMaxPooling2D",
    "Identity",
    "Input",
    "InputLayer",
    "InputSpec",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "MaxPool2D",
    "MaxPooling2D",
    "Maximum",
    "Minimum",
    "Multiply",
    "Normalization",
    "NumpyLayer",
    "PReLU",
    "Permute",
    "RandomCrop",
    "RandomFlip",
    "ReLU",
    "RepeatVector",
    "Rescaling",
    "Reshape",
    "SeparableConv2D",
    "SeparableConvolution2D",
    "Softmax",
    "SpatialDropout2D",
    "Subtract",
    "UpSampling2D",
    "ZeroPadding2D",
    "add",
    "average",
    "concatenate",
    "deserialize",
    "maximum",
    "minimum",
    "multiply",
    "serialize",
    "subtract",
]
