"""Small networks with different memory shapes: plain, residual, with activations first, densely concatenated."""

from __future__ import annotations

from typing import Any


def plain(size: int, width: int) -> Any:
    """Convolutions in a row, with bias and pooling, as in VGG."""
    import pydtconv as keras
    from pydtconv import layers

    model = keras.Sequential([keras.Input((size, size, 3))])
    for stage in range(3):
        for _ in range(2):
            model.add(layers.Conv2D(width << stage, 3, padding="same", activation="relu"))
        model.add(layers.MaxPooling2D())
    model.add(layers.Flatten())
    model.add(layers.Dense(10 * width, activation="relu"))
    model.add(layers.Dense(10, activation="softmax"))
    return model


def residual(size: int, width: int) -> Any:
    """Two stages of basic blocks, as in ResNet."""
    import pydtconv as keras
    from pydtconv import layers

    def conv_bn(x: Any, filters: int, kernel_size: int, strides: int = 1) -> Any:
        x = layers.Conv2D(filters, kernel_size, strides, padding="same", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    inputs = keras.Input((size, size, 3))
    x = layers.ReLU()(conv_bn(inputs, width, 3))
    for stage in range(2):
        for block in range(2):
            strides = 2 if stage and not block else 1
            main = layers.ReLU()(conv_bn(x, width << stage, 3, strides))
            main = conv_bn(main, width << stage, 3)
            shortcut = conv_bn(x, width << stage, 1, strides) if strides > 1 else x
            x = layers.ReLU()(layers.Add()([main, shortcut]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(10)(x))


def preactivation(size: int, width: int) -> Any:
    """Two stages of blocks that normalize first, as in ResNetV2: convolutions go straight into additions."""
    import pydtconv as keras
    from pydtconv import layers

    inputs = keras.Input((size, size, 3))
    x = layers.Conv2D(width, 3, padding="same", use_bias=False)(inputs)
    for stage in range(2):
        for block in range(2):
            strides = 2 if stage and not block else 1
            before = layers.ReLU()(layers.BatchNormalization()(x))
            shortcut = layers.Conv2D(width << stage, 1, strides)(before) if strides > 1 else x
            main = layers.Conv2D(width << stage, 3, strides, padding="same", use_bias=False)(before)
            main = layers.ReLU()(layers.BatchNormalization()(main))
            main = layers.Conv2D(width << stage, 3, padding="same", use_bias=block == 1)(main)
            x = layers.Add()([shortcut, main])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.BatchNormalization()(x)))
    return keras.Model(inputs, layers.Dense(10)(x))


def dense(size: int, width: int) -> Any:
    """Two blocks of concatenated layers, as in DenseNet."""
    import pydtconv as keras
    from pydtconv import layers

    inputs = keras.Input((size, size, 3))
    x = layers.Conv2D(2 * width, 3, padding="same", use_bias=False)(inputs)
    for _ in range(2):
        for _ in range(4):
            new = layers.ReLU()(layers.BatchNormalization()(x))
            new = layers.Conv2D(4 * width, 1, use_bias=False)(new)
            new = layers.ReLU()(layers.BatchNormalization()(new))
            new = layers.Conv2D(width, 3, padding="same", use_bias=False)(new)
            x = layers.Concatenate()([x, new])
        x = layers.AveragePooling2D(2)(layers.Conv2D(2 * width, 1, use_bias=False)(x))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(10)(x))


def excited(size: int, width: int) -> Any:
    """Blocks with depthwise convolutions, SiLU, and squeeze-and-excitation, as in EfficientNet."""
    import pydtconv as keras
    from pydtconv import layers

    def normalized(x: Any, activation: str | None = "silu") -> Any:
        x = layers.BatchNormalization()(x)
        return layers.Activation(activation)(x) if activation else x

    inputs = keras.Input((size, size, 3))
    x = normalized(layers.Conv2D(width, 3, 2, padding="same", use_bias=False)(inputs))
    for activation in ("silu", "relu"):
        y = normalized(layers.Conv2D(4 * width, 1, use_bias=False)(x), activation)
        y = normalized(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y), activation)
        factors = layers.GlobalAveragePooling2D(keepdims=True)(y)
        factors = layers.Conv2D(4 * width, 1, activation="sigmoid")(layers.Conv2D(2, 1, activation="silu")(factors))
        y = layers.Multiply()([y, factors])
        x = layers.Add()([x, normalized(layers.Conv2D(width, 1, use_bias=False)(y), None)])
    x = normalized(layers.Conv2D(4 * width, 1, use_bias=False)(x))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def attention(size: int, width: int) -> Any:
    """Two blocks of attention and dense layers on patches, as in a Vision Transformer."""
    import pydtconv as keras
    from pydtconv import layers

    inputs = keras.Input((size, size, 3))
    x = layers.Conv2D(2 * width, 4, strides=4)(inputs)
    x = layers.Reshape((size // 4 * (size // 4), 2 * width))(x)
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(2, width)(y, y)])
        y = layers.Dense(8 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(2 * width)(y)])
    return keras.Model(inputs, layers.Dense(10)(x[:, 0]))


NETWORKS = {"plain": plain, "residual": residual, "preactivation": preactivation, "dense": dense, "excited": excited}
#: with one of tokens, which PyTorch's side of the tests has no rules for
ALL_NETWORKS = {**NETWORKS, "attention": attention}


def volumes(size: int, width: int) -> Any:
    """The images as volumes of as many pixels, convolved, normalized and pooled."""
    import pydtconv as keras
    from pydtconv import layers

    inputs = keras.Input((size, size, 3))
    edge = round((4 * size) ** 0.5)
    x = layers.Reshape((size // 4, edge, edge, 3))(inputs)
    for stage in range(2):
        for _ in range(2):
            x = layers.Conv3D(width << stage, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.MaxPooling3D(2)(x)
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling3D()(x)))


def trace(model: Any, name: str, size: int, batch: int) -> Any:
    """The graph of a training step of a network; its results are y and loss."""
    import pydtconv as keras
    from pydtconv import ops
    from pydtconv.graph import Graph
    from pydtconv.ops.base import Spec

    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((batch, size, size, 3), keras.config.floatx()))
        y_true = graph.input("y_true", Spec((batch,), "int32"))
        y = model(x, training=True)
        loss = ops.CrossEntropy("sparse", from_logits=name != "plain")(y, y_true)
        graph.outputs = {"y": y}
        graph.loss = graph.outputs["loss"] = ops.WeightedMean()(loss)
    return graph
