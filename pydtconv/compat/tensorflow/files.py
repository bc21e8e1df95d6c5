"""`tf.io`: files, folders, and images as bytes."""

from __future__ import annotations

import glob
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow import decoding, image, parsing
from pydtconv.compat.tensorflow.arrays import Array, bytes_of, in_bytes, scalar, text_of
from pydtconv.compat.tensorflow.records import TFRecordOptions, TFRecordWriter
from pydtconv.files.pixels import encoded_png, pillow


def read_file(filename: Any, name: str | None = None) -> Array:
    """The bytes of a file."""
    return scalar(Path(text_of(filename)).read_bytes())


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes bytes to a file, whose folders are made."""
    path = Path(text_of(filename))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes_of(contents))


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Array:
    """The bytes of a PNG of pixels (h, w, 1 to 4) in uint8 or uint16."""
    return scalar(encoded_png(np.asarray(image)))


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    **kwargs: Any,
) -> Array:
    """The bytes of a JPEG of pixels (h, w, 1 or 3) in uint8."""
    pixels, data = np.asarray(image), io.BytesIO()
    if pixels.dtype != np.uint8:
        raise ValueError(f"encode_jpeg: image: expected uint8, got {pixels.dtype}")
    pillow().fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(
        data,
        "JPEG",
        quality=int(quality),
        progressive=progressive,
        optimize=optimize_size,
        subsampling=2 if chroma_downsampling else 0,
    )
    return scalar(data.getvalue())


def matching_files(pattern: Any, name: str | None = None) -> Array:
    """The names of files that fit patterns, in the order of the alphabet."""
    patterns = [text_of(each) for each in in_bytes(pattern).reshape(-1)]
    return in_bytes(sorted({path for each in patterns for path in glob.glob(each)}))


class GFile:
    """A file, whose name may be a tensor."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._open = None
        self._name, self._mode = text_of(name), mode

    @property
    def name(self) -> str:
        """The file's name."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode in which it is opened."""
        return self._mode

    @property
    def _file(self) -> Any:
        if self._open is None:
            text = None if "b" in self._mode else "utf-8"
            self._open = open(self._name, self._mode, encoding=text)  # type: ignore[assignment]  # noqa: SIM115
        return self._open

    def size(self) -> int:
        """Its bytes."""
        return os.path.getsize(self._name)

    def read(self, n: int = -1) -> Any:
        """So many bytes or characters, by default all."""
        return self._file.read(n)

    def write(self, file_content: Any) -> None:
        """Writes bytes, or a string, as the mode is."""
        self._file.write(bytes_of(file_content) if "b" in self._mode else text_of(file_content))

    def seek(self, offset: Any = None, whence: int = 0, position: Any = None) -> None:
        """Goes on at another place."""
        self._file.seek(position if offset is None else offset, whence)

    def __getattr__(self, name: str) -> Any:
        if name not in ("readline", "readlines", "tell", "seekable", "fileno", "closed"):
            raise AttributeError(f"GFile has no {name!r}")
        return getattr(self._file, name)

    def next(self) -> Any:
        """The next line."""
        return next(self._file)

    def flush(self) -> None:
        """Writes what is kept in memory."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._open is not None:
            self._open.close()
        self._open = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self._file


def _glob(pattern: Any) -> list[str]:
    return [text_of(each) for each in matching_files(pattern)]


def _replacing(function: Any) -> Any:
    def moved(src: Any, dst: Any, overwrite: bool = False) -> None:
        source, target = text_of(src), text_of(dst)
        if not overwrite and os.path.exists(target):
            raise FileExistsError(f"{target} exists: overwrite=True replaces it")
        function(source, target)

    return moved


def _of_path(function: Any, **settings: Any) -> Any:
    return lambda path, *args, **kwargs: function(text_of(path), *args, **{**settings, **kwargs})


def _walk(top: Any, topdown: bool = True, onerror: Any = None) -> Iterator[Any]:
    return os.walk(text_of(top), topdown, onerror)


def gfile() -> dict[str, Any]:
    """The names of `tf.io.gfile`."""
    return {
        "GFile": GFile,
        "copy": _replacing(shutil.copyfile),
        "exists": _of_path(os.path.exists),
        "get_registered_schemes": lambda: ["", "file"],
        "glob": _glob,
        "isdir": _of_path(os.path.isdir),
        "join": lambda path, *paths: os.path.join(*map(text_of, (path, *paths))),
        "listdir": _of_path(os.listdir),
        "makedirs": _of_path(os.makedirs, exist_ok=True),
        "mkdir": _of_path(os.mkdir),
        "remove": _of_path(os.remove),
        "rename": _replacing(os.replace),
        "rmtree": _of_path(shutil.rmtree),
        "stat": _of_path(_Statistics),
        "walk": _walk,
    }


class _Statistics:
    """Size, time of change and kind of a file."""

    def __init__(self, path: str) -> None:
        found = os.stat(path)
        self.length, self.mtime_nsec, self.is_directory = found.st_size, found.st_mtime_ns, os.path.isdir(path)


def images() -> dict[str, Any]:
    """Functions of `tf.io` and `tf.image` that read and write images."""
    own = encode_jpeg, encode_png
    return {each.__name__: each for each in own} | {
        "decode_bmp": _decode, "decode_gif": image.decode_gif, "decode_image": image.decode_image,
        "decode_jpeg": _decode, "decode_png": image.decode_png,
    }  # fmt: skip


def _decode(contents: Any, channels: int = 0, *args: Any, **kwargs: Any) -> Any:
    return image.decode_png(contents, channels)


def table() -> dict[str, Any]:
    """The names of `tf.io`."""
    own = read_file, write_file, matching_files, TFRecordOptions, TFRecordWriter
    return {each.__name__: each for each in own} | images() | parsing.table() | decoding.table()
