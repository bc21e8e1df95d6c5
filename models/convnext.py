"""ConvNeXts as Keras has them (Z. Liu et al., "A ConvNet for the 2020s", CVPR 2022)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import Sequential, initializers, layers
from pydtconv.applications.assembly import Arguments, channels, named, network
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = [f"ConvNeXt{size}" for size in ("Base", "Large", "Small", "Tiny", "XLarge")] + [
    "decode_predictions",
    "preprocess_input",
]


class LayerScale(layers.Layer):
    """x * gamma, gamma a vector of `projection_dim` that begins with `init_values`."""

    def __init__(self, init_values: float, projection_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.init_values = init_values
        self.projection_dim = projection_dim

    def build(self, input_shape: Any) -> None:
        self.gamma = self.add_weight((self.projection_dim,), initializers.Constant(self.init_values))

    def call(self, inputs: Any) -> Any:
        return inputs * self.gamma


def _norm(name: str | None = None) -> Any:
    return layers.LayerNormalization(epsilon=1e-6, name=name)


def _block(x: Any, name: str) -> Any:
    c = channels(x)
    y = layers.Conv2D(c, 7, padding="same", groups=c, name=f"{name}_depthwise_conv")(x)
    y = layers.Dense(4 * c, name=f"{name}_pointwise_conv_1")(_norm(f"{name}_layernorm")(y))
    y = layers.Dense(c, name=f"{name}_pointwise_conv_2")(layers.Activation("gelu", name=f"{name}_gelu")(y))
    y = LayerScale(1e-6, c, name=f"{name}_layer_scale")(y)
    return x + layers.Activation("linear", name=f"{name}_identity")(y)


def _prepared(x: Any, name: str) -> Any:
    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    return layers.Normalization(
        mean=[255 * m for m in mean],
        variance=[(255 * d) ** 2 for d in deviation],
        name=f"{name}_prestem_normalization",
    )(x)


def _convnext(kind: str, depths: tuple[int, ...], widths: tuple[int, ...]) -> Callable[..., Any]:
    """depths: blocks of each stage.  widths: their channels."""
    function, default = f"ConvNeXt{kind}", f"convnext_{kind.lower()}"

    def build(
        include_top: bool = True,
        include_preprocessing: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        name: str = default,
    ) -> Any:
        given = Arguments(
            include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name
        )

        def features(x: Any) -> Any:
            if include_preprocessing and channels(x) == 3:
                x = _prepared(x, name)
            stem = layers.Conv2D(widths[0], 4, strides=4, name=f"{name}_stem_conv")
            steps = [Sequential([stem, _norm(f"{name}_stem_layernorm")], name=f"{name}_stem")]
            for i, width in enumerate(widths[1:]):
                conv = layers.Conv2D(width, 2, strides=2, name=f"{name}_downsampling_conv_{i}")
                norm = _norm(f"{name}_downsampling_layernorm_{i}")
                steps.append(Sequential([norm, conv], name=f"{name}_downsampling_block_{i}"))
            for stage, (step, depth) in enumerate(zip(steps, depths, strict=True)):
                x = step(x)
                for i in range(depth):
                    x = _block(x, f"{name}_stage_{stage}_block_{i}")
            return x

        def top(x: Any, classes: int, activation: Any) -> Any:
            x = _norm(f"{name}_head_layernorm")(layers.GlobalAveragePooling2D(name=f"{name}_head_gap")(x))
            return layers.Dense(classes, activation=activation, name=f"{name}_head_dense")(x)

        return network(features, given, top=top, pools=(None, None), bottom=lambda x: _norm()(x))

    about = f"{function}, Keras's.\n\ninclude_preprocessing: whether images of 0 to 255 are normalized first."
    return named(build, function, about, _convnext)


ConvNeXtTiny = _convnext("Tiny", (3, 3, 9, 3), (96, 192, 384, 768))
ConvNeXtSmall = _convnext("Small", (3, 3, 27, 3), (96, 192, 384, 768))
ConvNeXtBase = _convnext("Base", (3, 3, 27, 3), (128, 256, 512, 1024))
ConvNeXtLarge = _convnext("Large", (3, 3, 27, 3), (192, 384, 768, 1536))
ConvNeXtXLarge = _convnext("XLarge", (3, 3, 27, 3), (256, 512, 1024, 2048))
preprocess_input = preprocessing(None)
