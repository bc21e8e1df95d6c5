"""Layers, by Keras's names."""

from pydtconv.layers.activation import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from pydtconv.layers.attention import AdditiveAttention, Attention
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.objects import serialize as serialize
from pydtconv.layers.bidirectional import Bidirectional
from pydtconv.layers.conv_lstm import ConvLSTM1D, ConvLSTM2D, ConvLSTM3D
from pydtconv.layers.convolution import (
    Conv1D,
    Conv2D,
    Conv3D,
    Convolution1D,
    Convolution2D,
    Convolution3D,
)
from pydtconv.layers.convolution_transpose import (
    Conv1DTranspose,
    Conv2DTranspose,
    Conv3DTranspose,
    Convolution1DTranspose,
    Convolution2DTranspose,
    Convolution3DTranspose,
)
from pydtconv.layers.core import Identity, Lambda
from pydtconv.layers.dense import Dense
from pydtconv.layers.depthwise import (
    DepthwiseConv1D,
    DepthwiseConv2D,
    SeparableConv1D,
    SeparableConv2D,
    SeparableConvolution1D,
    SeparableConvolution2D,
)
from pydtconv.layers.dot import Dot, dot
from pydtconv.layers.einsum_dense import EinsumDense
from pydtconv.layers.embedding import Embedding, ReversibleEmbedding
from pydtconv.layers.global_pooling import (
    AdaptiveAveragePooling1D,
    AdaptiveAveragePooling2D,
    AdaptiveAveragePooling3D,
    AdaptiveMaxPooling1D,
    AdaptiveMaxPooling2D,
    AdaptiveMaxPooling3D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    GlobalMaxPooling3D,
)
from pydtconv.layers.group_normalization import GroupNormalization, RMSNormalization, UnitNormalization
from pydtconv.layers.grouped_query_attention import GroupedQueryAttention
from pydtconv.layers.input_layer import Input, InputLayer
from pydtconv.layers.masking import Masking
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
from pydtconv.layers.multi_head_attention import MultiHeadAttention
from pydtconv.layers.normalization import BatchNormalization, LayerNormalization
from pydtconv.layers.numpy_layer import NumpyLayer
from pydtconv.layers.padding import (
    Cropping1D,
    Cropping2D,
    Cropping3D,
    UpSampling1D,
    UpSampling2D,
    UpSampling3D,
    ZeroPadding1D,
    ZeroPadding2D,
    ZeroPadding3D,
)
from pydtconv.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)
from pydtconv.layers.preprocessing.bounding_boxes import MaxNumBoundingBoxes
from pydtconv.layers.preprocessing.categories import CategoryEncoding, Discretization
from pydtconv.layers.preprocessing.colour import (
    RandomBrightness,
    RandomColorDegeneration,
    RandomContrast,
    RandomGaussianBlur,
    RandomGrayscale,
    RandomHue,
    RandomInvert,
    RandomPosterization,
    RandomSaturation,
    RandomSharpness,
    Solarization,
)
from pydtconv.layers.preprocessing.geometry import (
    RandomElasticTransform,
    RandomErasing,
    RandomPerspective,
    RandomRotation,
    RandomShear,
    RandomTranslation,
    RandomZoom,
    Resizing,
)
from pydtconv.layers.preprocessing.hashing import HashedCrossing, Hashing
from pydtconv.layers.preprocessing.images import Normalization, Rescaling
from pydtconv.layers.preprocessing.lookups import IntegerLookup, StringLookup
from pydtconv.layers.preprocessing.mixing import CutMix, MixUp
from pydtconv.layers.preprocessing.policies import (
    AugMix,
    AutoContrast,
    ContrastLimitedAdaptiveHistogramEqualization,
    Equalization,
    RandAugment,
    RandomColorJitter,
)
from pydtconv.layers.preprocessing.spectrograms import MelSpectrogram, STFTSpectrogram
from pydtconv.layers.preprocessing.text_vectorization import TextVectorization
from pydtconv.layers.preprocessing.windows import CenterCrop, RandomCrop, RandomFlip
from pydtconv.layers.random_dropout import AlphaDropout, GaussianDropout
from pydtconv.layers.recurrent import RNN, StackedRNNCells
from pydtconv.layers.recurrent_cells import GRUCell, LSTMCell, SimpleRNNCell
from pydtconv.layers.recurrent_layers import GRU, LSTM, SimpleRNN
from pydtconv.layers.regularization import (
    ActivityRegularization,
    Dropout,
    GaussianNoise,
    SpatialDropout1D,
    SpatialDropout2D,
    SpatialDropout3D,
)
from pydtconv.layers.reshaping import Flatten, Permute, RepeatVector, Reshape
from pydtconv.layers.spectral_normalization import SpectralNormalization
from pydtconv.layers.wrappers import Pipeline, TimeDistributed, Wrapper
from pydtconv.serialization.objects import deserialize_keras_object as deserialize
from pydtconv.suggest import refusal

#: Keras's name of it
GroupQueryAttention = GroupedQueryAttention

__all__ = [
    "ELU",
    "GRU",
    "LSTM",
    "RNN",
    "Activation",
    "ActivityRegularization",
    "AdaptiveAveragePooling1D",
    "AdaptiveAveragePooling2D",
    "AdaptiveAveragePooling3D",
    "AdaptiveMaxPooling1D",
    "AdaptiveMaxPooling2D",
    "AdaptiveMaxPooling3D",
    "Add",
    "AdditiveAttention",
    "AlphaDropout",
    "Attention",
    "AugMix",
    "AutoContrast",
    "Average",
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "BatchNormalization",
    "Bidirectional",
    "CategoryEncoding",
    "CenterCrop",
    "Concatenate",
    "ContrastLimitedAdaptiveHistogramEqualization",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "ConvLSTM1D",
    "ConvLSTM2D",
    "ConvLSTM3D",
    "Convolution1D",
    "Convolution1DTranspose",
    "Convolution2D",
    "Convolution2DTranspose",
    "Convolution3D",
    "Convolution3DTranspose",
    "Cropping1D",
    "Cropping2D",
    "Cropping3D",
    "CutMix",
    "Dense",
    "DepthwiseConv1D",
    "DepthwiseConv2D",
    "Discretization",
    "Dot",
    "Dropout",
    "EinsumDense",
    "Embedding",
    "Equalization",
    "Flatten",
    "GRUCell",
    "GaussianDropout",
    "GaussianNoise",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "GroupNormalization",
    "GroupQueryAttention",
    "GroupedQueryAttention",
    "HashedCrossing",
    "Hashing",
    "Identity",
    "Input",
    "InputLayer",
    "InputSpec",
    "IntegerLookup",
    "LSTMCell",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "Masking",
    "MaxNumBoundingBoxes",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "Maximum",
    "MelSpectrogram",
    "Minimum",
    "MixUp",
    "MultiHeadAttention",
    "Multiply",
    "Normalization",
    "NumpyLayer",
    "PReLU",
    "Permute",
    "Pipeline",
    "RMSNormalization",
    "RandAugment",
    "RandomBrightness",
    "RandomColorDegeneration",
    "RandomColorJitter",
    "RandomContrast",
    "RandomCrop",
    "RandomElasticTransform",
    "RandomErasing",
    "RandomFlip",
    "RandomGaussianBlur",
    "RandomGrayscale",
    "RandomHue",
    "RandomInvert",
    "RandomPerspective",
    "RandomPosterization",
    "RandomRotation",
    "RandomSaturation",
    "RandomSharpness",
    "RandomShear",
    "RandomTranslation",
    "RandomZoom",
    "ReLU",
    "RepeatVector",
    "Rescaling",
    "Reshape",
    "Resizing",
    "ReversibleEmbedding",
    "STFTSpectrogram",
    "SeparableConv1D",
    "SeparableConv2D",
    "SeparableConvolution1D",
    "SeparableConvolution2D",
    "SimpleRNN",
    "SimpleRNNCell",
    "Softmax",
    "Solarization",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "SpectralNormalization",
    "StackedRNNCells",
    "StringLookup",
    "Subtract",
    "TextVectorization",
    "TimeDistributed",
    "UnitNormalization",
    "UpSampling1D",
    "UpSampling2D",
    "UpSampling3D",
    "Wrapper",
    "ZeroPadding1D",
    "ZeroPadding2D",
    "ZeroPadding3D",
    "add",
    "average",
    "concatenate",
    "deserialize",
    "dot",
    "maximum",
    "minimum",
    "multiply",
    "serialize",
    "subtract",
]

__getattr__ = refusal(__name__, __all__)
