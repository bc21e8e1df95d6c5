"""What commands share: the options of the network, of its images and of this machine, and what they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import mebibytes, whole
from pydtconv.suggest import did_you_mean, one_of

_MIB = 1 << 20
Shape = tuple[int, ...]


def add_model(parser: Any, required: bool = True) -> None:
    parser.add_argument(
        "--model",
        required=required,
        help="a network, such as resnet34, vgg16bn, or vgg16 (Keras's) and smallvgg16 (for small images)",
    )
    parser.add_argument("--dtype", help="policy of all layers: float32 (default), float64 or mixed_bfloat16")


def add_weights(parser: Any) -> None:
    parser.add_argument("--weights", metavar="FILE", help="weights that fit all layers, as `train` writes them")


def add_variant(parser: Any) -> None:
    parser.add_argument("--variant", help="convolutions: BASE, RDX, CGT, CGT+PM, CGT+DG, CGT+DG+PM or AUTO (default)")


def add_precision(parser: Any) -> None:
    parser.add_argument(
        "--matmul-precision", help="how float32 is multiplied: highest (default), high or medium (with AMX: faster)"
    )


#: what an image and its classes are without the options of `add_shape`
_SHAPE = {"image_size": 32, "channels": 3, "classes": 10}


def refuse(args: Any, names: Iterable[str], why: str) -> None:
    """Raises CommandError where one of these options is given: it would change nothing, for a reason."""
    for name in names:
        if getattr(args, name, None) not in (None, False, _SHAPE.get(name)):
            raise CommandError(f"--{name.replace('_', '-')}: changes nothing {why}")


def check_file(option: str, path: str, size: int = 0) -> None:
    """Raises CommandError, before anything is computed, where a file of so many bytes could not be written."""
    from pydtconv.files.whole_file import check_writable

    try:
        check_writable(Path(path), size)
    except OSError as error:
        raise CommandError(f"{option}: cannot be written: {error}") from None


def check_picture(option: str, path: str | None, needed: bool = True) -> None:
    """Raises CommandError, before anything is computed, where a picture could not be drawn into this file.

    needed: whether there must be matplotlib.
    """
    from pydtconv.files.plotting import check_picture

    try:
        if path is not None:
            check_picture(path)
    except (ImportError, OSError, ValueError) as error:
        if needed or not isinstance(error, ImportError):
            raise CommandError(f"{option}: {error}") from None


def add_device(parser: Any) -> None:
    parser.add_argument("--device", help="cpu, gpu, gpu:1, or host, which tests kernels for GPUs (default: cpu)")


def use_device(args: Any) -> None:
    """Makes --device active, else PYDTCONV_DEVICE.  Raises CommandError, in one line, for one that is not there."""
    from pydtconv import config, devices

    try:
        config.set_device(args.device or config.device())
    except (ValueError, devices.DeviceError) as error:
        raise CommandError(f"--device: {error}" if args.device else str(error)) from None


def add_workspace_limit(parser: Any) -> None:
    parser.add_argument(
        "--workspace-limit",
        type=mebibytes,
        help="MiB, or a size such as 1GB; algorithms of convolution that need more are left out",
    )


def add_split(parser: Any) -> None:
    parser.add_argument(
        "--split",
        metavar="DEPTH:ROWSxCOLUMNS[:STOCHASTIC|:exact][:image]",
        help="run this share of the convolutions in patches, as in 0.5:2x2:0.2 or 0.5:2x2:exact:image; pays within a "
        "--memory-limit: without one a step may even take more memory",
    )


def split(args: Any) -> Any:
    """--split as a Split.  Raises CommandError for another text."""
    from pydtconv import Split

    try:
        return Split.of(args.split)
    except ValueError as error:
        raise CommandError(f"--split: {error}") from None


def limit_workspace(args: Any) -> None:
    """Makes --workspace-limit active."""
    from pydtconv import config

    if args.workspace_limit is not None:
        config.set_conv_workspace_limit(int(args.workspace_limit * _MIB))


def add_shape(parser: Any) -> None:
    parser.add_argument(
        "--image-size",
        type=whole(1),
        default=_SHAPE["image_size"],
        help="rows and columns of an image, planes of a volume, steps of a signal (default: 32)",
    )
    parser.add_argument(
        "--channels", type=whole(1), default=_SHAPE["channels"], help="channels of an image (default: 3)"
    )
    parser.add_argument("--classes", type=whole(1), default=_SHAPE["classes"], help="number of classes (default: 10)")


def shape_of(args: Any) -> Shape:
    """What --image-size and --channels say: along as many axes as the network has."""
    from pydtconv import applications

    return (*[args.image_size] * applications.axes(args.model), args.channels)


def build(args: Any, input_shape: Shape, classes: int) -> Any:
    """The network, after `prepare`.  Raises CommandError for sizes and weights that do not fit.

    --weights fit all layers; the classes of --pretrained may be others.
    """
    from pydtconv import applications

    try:
        pretrained, weights = getattr(args, "pretrained", None), getattr(args, "weights", None)
        network = applications.build(args.model, input_shape=input_shape, classes=classes, weights=pretrained)
        if weights is not None:
            network.load_weights(weights)
        return network
    except (MemoryError, ValueError) as error:
        size = "x".join(map(str, input_shape))
        raise CommandError(f"{args.model} for images of {size} and {classes} classes: {error}") from None
    except OSError as error:
        raise CommandError(str(error)) from None


def prepare(args: Any) -> None:
    """Makes --dtype the policy of the layers that are made from now on, and --matmul-precision and --variant active.

    To be called before data is loaded.  Raises CommandError for unknown ones, an unknown --model, and --weights that
    are not there.
    """
    from pydtconv import applications, config
    from pydtconv.conv import VARIANTS

    try:
        applications.axes(args.model)
    except ValueError as error:
        raise CommandError(f"--model: {str(error).removeprefix('applications: ')}") from None
    for option in ("weights", "pretrained"):
        path = getattr(args, option, None)
        if path is not None and not Path(path).is_file():
            near = did_you_mean(path, map(str, Path(path).parent.glob("*.*")))
            raise CommandError(f"--{option}: expected a file, found none at {path!r}{near}")
    if getattr(args, "variant", None) is not None:
        if args.variant.upper() not in VARIANTS:
            raise CommandError(f"--variant: unknown variant {args.variant!r}{one_of(args.variant, VARIANTS)}")
        config.set_conv_variant(args.variant.upper())
    if args.dtype is not None:
        try:
            config.set_dtype_policy(args.dtype)
        except ValueError as error:
            raise CommandError(f"--dtype: {error}") from None
    if getattr(args, "matmul_precision", None) is not None:
        try:
            config.set_float32_matmul_precision(args.matmul_precision)
        except ValueError as error:
            raise CommandError(f"--matmul-precision: {error}") from None


def limit(args: Any) -> int | None:
    """--memory-limit in bytes."""
    return None if args.memory_limit is None else int(args.memory_limit * _MIB)


def scaled(model: Any, input_shape: Shape, augment: bool = False, randaugment: bool = False) -> Any:
    """The model behind what takes images of 0 to 255 to -2 to 2 and, in training, changes them.

    augment: they are mirrored and shifted.  randaugment: as that layer does.
    """
    import pydtconv as keras
    from pydtconv import layers

    inputs = keras.Input(shape=input_shape)
    x = layers.RandAugment(value_range=(0, 255))(inputs) if randaugment else inputs
    x = layers.Rescaling(1 / 64, offset=-2.0)(x)
    if augment:
        x = layers.RandomFlip("horizontal")(x)
        rows = max(input_shape[0] // 8, 1)
        x = layers.RandomCrop(input_shape[0], input_shape[1])(layers.ZeroPadding2D(rows)(x))
    return keras.Model(inputs, model(x), name=model.name)
