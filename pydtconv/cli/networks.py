"""What train, evaluate, summary and plan share: the options of model and data, and what they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, whole
from pydtconv.suggest import did_you_mean, one_of

_MIB = 1 << 20
Shape = tuple[int, ...]


def add_model(parser: Parser, required: bool = True) -> None:
    parser.add_argument(
        "--model",
        required=required,
        help="a network, such as resnet34, vgg16bn, or vgg16 (Keras's) and smallvgg16 (for small images)",
    )
    parser.add_argument("--dtype", help="policy of all layers: float32 (default), float64 or mixed_bfloat16")


def add_weights(parser: Parser) -> None:
    parser.add_argument("--weights", help="a .weights.h5 file to start from")


def add_variant(parser: Parser) -> None:
    parser.add_argument("--variant", help="convolutions: BASE, RDX, CGT, CGT+PM, CGT+DG or AUTO (default)")


def add_precision(parser: Parser) -> None:
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


def add_device(parser: Parser) -> None:
    parser.add_argument("--device", help="cpu, gpu, gpu:1, or host, which tests kernels for GPUs (default: cpu)")


def use_device(args: Any) -> None:
    """Makes --device active, else PYDTCONV_DEVICE.  Raises CommandError, in one line, for one that is not there."""
    from pydtconv import config, devices

    try:
        config.set_device(args.device or config.device())
    except (ValueError, devices.DeviceError) as error:
        raise CommandError(f"--device: {error}" if args.device else str(error)) from None


def add_workspace_limit(parser: Parser) -> None:
    parser.add_argument(
        "--workspace-limit", type=float, help="MiB; algorithms of convolution that need more are left out"
    )


def add_split(parser: Parser) -> None:
    parser.add_argument(
        "--split",
        metavar="DEPTH:ROWSxCOLUMNS[:STOCHASTIC|:exact][:image]",
        help="run this share of the convolutions in patches, as in 0.5:2x2:0.2 or 0.5:2x2:exact:image",
    )


def split(args: Any) -> Any:
    """--split as a Split.  Raises CommandError for another text."""
    from pydtconv import Split

    try:
        return Split.of(args.split)
    except ValueError as error:
        raise CommandError(f"--split: {error}") from None


def limit_workspace(args: Any) -> None:
    """Makes --workspace-limit active.  Raises CommandError for a negative one."""
    from pydtconv import config

    if args.workspace_limit is not None:
        if not 0 <= args.workspace_limit * _MIB < float("inf"):
            raise CommandError(f"--workspace-limit: expected MiB of 0 or more, got {args.workspace_limit}")
        config.set_conv_workspace_limit(int(args.workspace_limit * _MIB))


def add_shape(parser: Parser) -> None:
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


def add_data(parser: Parser) -> None:
    parser.add_argument("--dataset", help="a data set (default: cifar10); not with --data")
    parser.add_argument("--data", help="a folder of images with train/ and val/, each with one folder for a class")
    parser.add_argument("--image-size", type=whole(1), help="rows and columns for --data (default: 224)")
    parser.add_argument("--classes", type=whole(1), help="number of classes (default: that of the data)")
    parser.add_argument("--batch-size", type=whole(1), default=64, help="images in a step (default: 64)")
    parser.add_argument("--samples", type=whole(1), help="use only the first ones of the parts of a --dataset")
    parser.add_argument("--skip-bad-files", action="store_true", help="name files of --data that are bad, and go on")


def build(args: Any, input_shape: Shape, classes: int) -> Any:
    """The network, after `prepare`.  Raises CommandError for sizes and weights that do not fit."""
    from pydtconv import applications

    try:
        return applications.build(
            args.model, input_shape=input_shape, classes=classes, weights=getattr(args, "weights", None)
        )
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
    weights = getattr(args, "weights", None)
    if weights is not None and not Path(weights).is_file():
        near = did_you_mean(weights, map(str, Path(weights).parent.glob("*.*")))
        raise CommandError(f"--weights: expected a file, found none at {weights!r}{near}")
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


def load(args: Any, training: bool) -> tuple[Any, Any, Shape, int]:
    """(training data or None, test data, input shape, classes): pairs of arrays, or folders of images.

    Raises CommandError for what is not there.
    """
    if args.data and args.dataset:
        raise CommandError(f"--data and --dataset: expected one of them, got {args.data!r} and {args.dataset!r}")
    if args.data:
        refuse(args, ("samples",), "with --data, whose images are all used: it is of --dataset")
    else:
        refuse(args, ("image_size", "skip_bad_files"), "without --data, whose images it is about")
    try:
        return _folders(args, training) if args.data else _arrays(args)
    except (ValueError, OSError, ImportError) as error:
        raise CommandError(str(error)) from None


def limit(args: Any) -> int | None:
    """--memory-limit in bytes."""
    return None if args.memory_limit is None else int(args.memory_limit * _MIB)


def _folders(args: Any, training: bool) -> tuple[Any, Any, Shape, int]:
    from pydtconv.utils import image_dataset_from_directory

    size = (args.image_size or 224, args.image_size or 224)
    options = {"image_size": size, "batch_size": args.batch_size, "crop_to_aspect_ratio": True}
    options["on_error"] = "skip" if args.skip_bad_files else "raise"
    train = image_dataset_from_directory(Path(args.data) / "train", **options) if training else None
    test = image_dataset_from_directory(Path(args.data) / "val", shuffle=False, **options)
    if train is not None and train.class_names != test.class_names:
        raise CommandError(f"--data: {_other_classes(args.data, train.class_names, test.class_names)}")
    if args.classes is not None and args.classes < len(test.class_names):
        raise CommandError(
            f"--classes: expected {len(test.class_names)} or more, one for each folder of {Path(args.data) / 'val'}, "
            f"got {args.classes}"
        )
    return train, test, (*size, 3), args.classes or len(test.class_names)


def _other_classes(root: str, train: list[str], test: list[str]) -> str:
    """What differs between the folders of classes."""
    only = {"train": sorted({*train} - {*test}), "val": sorted({*test} - {*train})}
    told = [f"{', '.join(map(repr, names[:5]))} only in {Path(root) / part}" for part, names in only.items() if names]
    sizes = f"{len(train)} and {len(test)}"
    return f"expected the same folders of classes in train/ and val/, got {sizes}: {'; '.join(told)}"


def _arrays(args: Any) -> tuple[Any, Any, Shape, int]:
    from pydtconv import datasets

    name = args.dataset or "cifar10"
    if name not in datasets.__all__:
        raise CommandError(f"--dataset: unknown data set {name!r}{one_of(name, datasets.__all__)}")
    (x_train, y_train), (x_test, y_test) = getattr(datasets, name).load_data()
    if args.samples:
        x_train, y_train, x_test, y_test = (part[: args.samples] for part in (x_train, y_train, x_test, y_test))
    classes = args.classes or int(max(y_train.max(), y_test.max())) + 1
    x_train, x_test = (x if x.ndim == 4 else x[..., None] for x in (x_train, x_test))
    return (x_train, y_train), (x_test, y_test), x_train.shape[1:], classes


def scaled(model: Any, input_shape: Shape, flip: bool = False, shift: bool = False) -> Any:
    """The model behind what takes images of 0 to 255 to -2 to 2 and, in training, mirrors and shifts them."""
    import pydtconv as keras
    from pydtconv import layers

    inputs = keras.Input(shape=input_shape)
    x = layers.Rescaling(1 / 64, offset=-2.0)(inputs)
    if flip:
        x = layers.RandomFlip("horizontal")(x)
    if shift:
        rows = max(input_shape[0] // 8, 1)
        x = layers.RandomCrop(input_shape[0], input_shape[1])(layers.ZeroPadding2D(rows)(x))
    return keras.Model(inputs, model(x), name=model.name)


def labels(data: Any) -> np.ndarray:
    return np.asarray(data).reshape(-1)
