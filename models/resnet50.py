"""`keras.applications.resnet50`: another name of `resnet`."""

from pydtconv.applications.resnet import ResNet50, decode_predictions, preprocess_input

__all__ = ["ResNet50", "decode_predictions", "preprocess_input"]
