"""Says of which class images are, as CSV: a line for each file, with the most likely classes and their scores.

  pydtconv predict photos --trained resnet18.toml
  pydtconv predict a.jpg b.jpg --model resnet18 --weights resnet18.weights.h5 --classes 2 --csv found.csv

The file of --trained is that which `pydtconv train` has written beside the weights: it tells the network, the weights,
the size of images and the names of classes.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

from pydtconv.cli import data, networks, run_files
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, whole

SUMMARY = "say of which class images are, as CSV"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="an image, or a folder with images at any depth")
    parser.add_argument("--trained", metavar="FILE", help="what `train` has written beside the weights (NAME.toml)")
    networks.add_model(parser, required=False)
    networks.add_weights(parser)
    parser.add_argument("--image-size", type=whole(1), help="rows and columns (default: those of --trained, else 224)")
    parser.add_argument("--classes", type=whole(1), help="number of classes (default: that of --trained)")
    parser.add_argument("--batch-size", type=whole(1), default=32, help="images at a time (default: 32)")
    parser.add_argument("--top", metavar="K", type=whole(1), default=1, help="classes of each image (default: 1)")
    parser.add_argument("--csv", metavar="FILE", help="write here (default: standard output)")
    networks.add_variant(parser)
    networks.add_precision(parser)
    networks.add_device(parser)


def run(args: Any) -> int:
    result = _trained(args)
    if args.csv:
        networks.check_file("--csv", args.csv)
    networks.prepare(args)
    networks.use_device(args)
    files = _files(args.paths)
    size, classes = args.image_size or (result.get("shape") or [224])[0], args.classes or result["classes"]
    names = data.names_of(result.get("names", []), classes)
    model = networks.scaled(networks.build(args, (size, size, 3), classes), (size, size, 3))
    try:
        scores = model.predict(_images(files, size, args.batch_size), verbose=0)
    except (ImportError, OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    top = min(args.top, classes)
    table.writerow(["file", *(f"{key}{'' if top == 1 else k + 1}" for k in range(top) for key in ("class", "score"))])
    for path, row in zip(files, scores, strict=True):
        best = row.argsort()[::-1][:top]
        table.writerow([path, *(part for k in best for part in (names[k], f"{row[k]:.4f}"))])
    if args.csv:
        Path(args.csv).write_text(text.getvalue(), encoding="utf-8", errors="surrogateescape")
        print(f"{len(files)} images: {args.csv}")
    else:
        sys.stdout.write(text.getvalue())
    return 0


def _trained(args: Any) -> dict[str, Any]:
    """The result in the file of --trained.  Options that are not given become those of it.

    Raises CommandError where neither it nor options say what is needed.
    """
    result: dict[str, Any] = {}
    if args.trained:
        try:
            options, result = run_files.read_result(args.trained)
        except (OSError, ValueError) as error:
            raise CommandError(f"--trained: {error}") from None
        args.model, args.dtype = args.model or options.get("model"), args.dtype or options.get("dtype")
        beside = Path(args.trained).parent / Path(result["weights"]).name
        args.weights = args.weights or str(beside if beside.exists() else result["weights"])
    elif args.model and args.weights and args.classes:
        result = {"classes": args.classes}
    if not result or not args.model:
        raise CommandError("expected --trained, or --model, --weights and --classes")
    return result


def _files(paths: list[str]) -> list[Path]:
    from pydtconv.files.image_folder import SUFFIXES

    found: list[Path] = []
    for path in map(Path, paths):
        inside = (
            sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES) if path.is_dir() else [path]
        )
        if not inside or not path.exists():
            raise CommandError(f"expected images at {str(path)!r}, found none")
        found += inside
    return found


def _images(files: list[Path], size: int, batch_size: int) -> Any:
    """Batches of the files, decoded as those of training."""
    from pydtconv import config
    from pydtconv.files.image_batches import ImageFolder
    from pydtconv.files.image_decoding import Decoder

    decoder = Decoder((size, size), "rgb", "bilinear", "crop", "auto")
    workers = config.num_threads()
    return ImageFolder(files, None, [], None, decoder, decoder, batch_size, False, None, "raise", workers, None)
