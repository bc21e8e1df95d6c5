"""The options of data, and the arrays or folders that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pydtconv.cli.errors import CommandError
from pydtconv.cli.networks import Shape, refuse
from pydtconv.cli.parser import number, whole
from pydtconv.suggest import one_of
from pydtconv.support.dataset import Walked


class Data(NamedTuple):
    """Training data (None for evaluation) and test data: pairs of arrays, or data sets with batches.

    shape: of an image.  names: of the classes, where they have some.
    """

    train: Any
    test: Any
    shape: Shape
    classes: int
    names: list[str] | None = None

    def batches(self, size: int) -> int:
        """Of an epoch."""
        return -(-len(self.train[0]) // size) if isinstance(self.train, tuple) else len(self.train)


def add_arguments(group: Any) -> None:
    group.add_argument("--dataset", help="a data set (default: cifar10); not with --data")
    group.add_argument("--data", help="a folder of images with train/ and val/, each with one folder for a class")
    group.add_argument("--image-size", type=whole(1), help="rows and columns for --data (default: 224)")
    group.add_argument("--classes", type=whole(1), help="number of classes (default: that of the data)")
    group.add_argument("--batch-size", type=whole(1), default=64, help="images in a step (default: 64)")
    group.add_argument("--samples", type=whole(1), help="use only the first ones of the parts of a --dataset")
    group.add_argument("--skip-bad-files", action="store_true", help="name files of --data that are bad, and go on")


def add_training(group: Any) -> None:
    """Options that are of training alone."""
    group.add_argument(
        "--synthetic", metavar="COUNT", type=whole(1), help="train on so many random images, to measure speed"
    )
    group.add_argument(
        "--validation-split",
        metavar="SHARE",
        type=number(0, above=True),
        help="test on this share of the training data; --data may then be one folder of classes",
    )


def check(args: Any) -> None:
    """Raises CommandError, before anything is loaded, for options that do not go together."""
    from pydtconv import datasets

    synthetic, split = getattr(args, "synthetic", None), getattr(args, "validation_split", None)
    if args.data and args.dataset:
        raise CommandError(f"--data and --dataset: expected one of them, got {args.data!r} and {args.dataset!r}")
    if synthetic and (args.data or args.dataset):
        raise CommandError("--synthetic: expected neither --data nor --dataset with it")
    if args.data or synthetic:
        refuse(args, ("samples",), "with --data and --synthetic, whose images are all used: it is of --dataset")
    if not args.data:
        refuse(args, ("skip_bad_files",), "without --data, whose images it is about")
    if not args.data and not synthetic:
        refuse(args, ("image_size",), "without --data or --synthetic, whose images it is about")
    if split is not None and not split < 1:
        raise CommandError(f"--validation-split: expected a share between 0 and 1, got {split:g}")
    if args.dataset and args.dataset not in datasets.__all__:
        raise CommandError(f"--dataset: unknown data set {args.dataset!r}{one_of(args.dataset, datasets.__all__)}")


def load(args: Any, training: bool, one_hot: bool = False) -> Data:
    """The data, after `check`.  one_hot: whether labels are rows.  Raises CommandError for what is not there."""
    check(args)
    try:
        return _folders(args, training, one_hot) if args.data else _arrays(args, one_hot)
    except (ValueError, OSError, ImportError) as error:
        raise CommandError(str(error)) from None


def _folders(args: Any, training: bool, one_hot: bool) -> Data:
    from pydtconv.utils import image_dataset_from_directory

    size, root, split = (args.image_size or 224,) * 2, Path(args.data), getattr(args, "validation_split", None)
    options: dict[str, Any] = {"image_size": size, "batch_size": args.batch_size, "crop_to_aspect_ratio": True}
    options |= {
        "on_error": "skip" if args.skip_bad_files else "raise",
        "label_mode": "categorical" if one_hot else "int",
    }
    if split is None:
        train = image_dataset_from_directory(root / "train", **options) if training else None
        test = image_dataset_from_directory(root / "val", shuffle=False, **options)
    else:
        root = root / "train" if (root / "train").is_dir() else root
        options |= {"validation_split": split, "subset": "both", "seed": args.seed}
        train, test = image_dataset_from_directory(root, **options)
    if train is not None and train.class_names != test.class_names:
        raise CommandError(f"--data: {_other_classes(args.data, train.class_names, test.class_names)}")
    count = len(test.class_names)
    if args.classes is not None and (args.classes < count or (one_hot and args.classes != count)):
        expected = f"{count}{'' if one_hot else ' or more'}, one for each folder of {root if split else root / 'val'}"
        raise CommandError(f"--classes: expected {expected}, got {args.classes}")
    classes = args.classes or count
    return Data(train, test, (*size, 3), classes, names_of(test.class_names, classes))


def names_of(names: Sequence[str], classes: int) -> list[str]:
    """The names of so many classes: numbers where they have none, bytes that are not UTF-8 escaped."""
    texts = [name.encode(errors="backslashreplace").decode() for name in names]
    return [*texts, *map(str, range(len(names), classes))]


def _other_classes(root: str, train: list[str], test: list[str]) -> str:
    """What differs between the folders of classes."""
    only = {"train": sorted({*train} - {*test}), "val": sorted({*test} - {*train})}
    told = [f"{', '.join(map(repr, names[:5]))} only in {Path(root) / part}" for part, names in only.items() if names]
    sizes = f"{len(train)} and {len(test)}"
    return f"expected the same folders of classes in train/ and val/, got {sizes}: {'; '.join(told)}"


def _arrays(args: Any, one_hot: bool) -> Data:
    from pydtconv import datasets
    from pydtconv.utils import to_categorical

    if getattr(args, "synthetic", None):
        train, test = _random(args)
    else:
        train, test = getattr(datasets, args.dataset or "cifar10").load_data()
        train, test = ((x if x.ndim == 4 else x[..., None], y) for x, y in (train, test))
    if args.samples:
        train, test = ((x[: args.samples], y[: args.samples]) for x, y in (train, test))
    split = getattr(args, "validation_split", None)
    if split is not None:
        count = int(len(train[0]) * split)
        if not 0 < count < len(train[0]):
            raise CommandError(f"--validation-split: expected a share that leaves samples, got {split:g}")
        train, test = tuple(part[:-count] for part in train), tuple(part[-count:] for part in train)
    parts = [(x, np.asarray(y).reshape(-1)) for x, y in (train, test)]
    classes = args.classes or max(int(y.max()) for _, y in parts) + 1
    if one_hot:
        parts = [(x, to_categorical(y, classes)) for x, y in parts]
    return Data(parts[0], parts[1], parts[0][0].shape[1:], classes)


def _random(args: Any) -> tuple[Any, Any]:
    """Random images and labels; the first quarter is also what is tested on."""
    from pydtconv import applications

    random, count = np.random.default_rng(args.seed), args.synthetic
    shape = (*[args.image_size or 224] * applications.axes(args.model), 3)
    x, y = random.integers(0, 256, (count, *shape), np.uint8), random.integers(0, args.classes or 10, count)
    return (x, y), (x[: max(count // 4, 1)], y[: max(count // 4, 1)])


class Batches(Walked):
    """Batches of arrays, in another order in each epoch."""

    def __init__(self, x: Any, y: Any, batch_size: int, seed: int) -> None:
        super().__init__()
        self.x, self.y, self.batch_size, self.seed, self.epoch = x, y, batch_size, seed, 0

    def __len__(self) -> int:
        return -(-len(self.x) // self.batch_size)

    def __getitem__(self, index: int) -> Any:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(len(self.x))
        rows = order[index * self.batch_size : (index + 1) * self.batch_size]
        return self.x[rows], self.y[rows]

    def on_epoch_end(self) -> None:
        self.epoch += 1

    def get_state(self) -> dict[str, Any]:
        return {"epoch": self.epoch}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.epoch = int(state["epoch"])


class Mixed(Walked):
    """Batches of a data set, in which each image and its row of scores are mixed with those of another one (MixUp)."""

    def __init__(self, batches: Any, alpha: float, seed: int) -> None:
        super().__init__()
        self.of, self.alpha, self.seed, self.epoch = batches, alpha, seed, 0

    def __len__(self) -> int:
        return len(self.of)

    def __getitem__(self, index: int) -> Any:
        from pydtconv.layers import MixUp

        images, labels = self.of[index]
        seed = int(np.random.default_rng((self.seed, self.epoch, index)).integers(1 << 31))
        mixed = MixUp(self.alpha, seed=seed)({"images": images, "labels": labels}, training=True)
        return np.asarray(mixed["images"]), np.asarray(mixed["labels"])

    def on_epoch_end(self) -> None:
        self.of.on_epoch_end()
        self.epoch += 1

    def _pydt_walk(self) -> Any:
        walk = super()._pydt_walk()
        walk.of = self.of._pydt_walk()
        return walk

    def get_state(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "of": self.of.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.epoch = int(state["epoch"])
        self.of.set_state(state["of"])
