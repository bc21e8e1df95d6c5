"""VGG19 as Keras has it (K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks", ICLR 2015, column E)."""

from __future__ import annotations

from pydtconv.applications.assembly import standard
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing
from pydtconv.applications.vgg16 import vgg_features, vgg_top

__all__ = ["VGG19", "decode_predictions", "preprocess_input"]

VGG19 = standard(
    "VGG19", "vgg19", vgg_features((2, 2, 4, 4, 4)), "VGG19, Keras's.", top=vgg_top, top_layers=3, pools=(None, None)
)
preprocess_input = preprocessing("caffe")
