"""Files from the network: downloaded once, checked, kept in Keras's cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

from pydtconv.files.reading import unpacked_limit
from pydtconv.files.unpacking import unpack
from pydtconv.naming import printable
from pydtconv.support.machine import home

_BLOCK = 1 << 20


def cache_folder() -> Path:
    """`$KERAS_HOME`, else `~/.keras`: the folder that Keras uses too, so what it has downloaded is found."""
    return Path(os.environ.get("KERAS_HOME") or home() / ".keras")


def digest_of(path: str | os.PathLike[str], algorithm: str = "sha256") -> str:
    """The hexadecimal digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def get_file(
    fname: str | None = None,
    origin: str | None = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: str = "auto",
    cache_dir: str | None = None,
    force_download: bool = False,
) -> str:
    """The path of a file in the cache, downloaded from `origin` if it is not there yet or its digest is wrong.

    fname: name in the cache, the URL's last part by default.  file_hash: expected digest, MD5 or SHA-256 by its length
    with hash_algorithm="auto".  extract (or untar): unpack a tar or zip archive into the folder `fname` and return that
    folder; one without a digest may unpack to 64 MiB and 16 times its own size.  cache_dir: instead of
    `cache_folder()`.
    Raises OSError when the download fails and ValueError when what came has another digest or is no such archive; the
    cache then holds no trace of it.
    """
    if not origin:
        raise ValueError("get_file: expected origin to be a URL, got none")
    if archive_format not in ("auto", "tar", "zip"):
        raise ValueError(f"get_file: expected archive_format 'auto', 'tar' or 'zip', got {archive_format!r}")
    extract = extract or untar
    fname = os.fspath(fname or os.path.basename(unquote(origin.split("?")[0])))
    if fname in ("", ".", "..") or not set(fname).isdisjoint({os.sep, os.altsep, "\0"}):
        raise ValueError(f"get_file: fname: expected the name of a file, without a folder, got {fname!r}")
    folder = Path(cache_dir or cache_folder()) / cache_subdir
    target = folder / fname
    download = folder / (fname + ".archive") if extract else target
    digest = file_hash or md5_hash
    algorithm = _algorithm(hash_algorithm, digest) if digest else ""
    if extract:
        cached = target.is_dir()
    else:
        cached = target.is_file() and (not digest or digest_of(target, algorithm) == digest)
    if cached and not force_download:
        return str(target)
    download.parent.mkdir(parents=True, exist_ok=True)
    _download(origin, download, digest, algorithm)
    if extract:
        _extract(download, target, bool(digest))
    return str(target)


def _algorithm(name: str, digest: str) -> str:
    if name == "auto":
        return "sha256" if len(digest) == 64 else "md5"
    if name not in ("sha256", "md5"):
        raise ValueError(f"get_file: expected hash_algorithm 'auto', 'sha256' or 'md5', got {name!r}")
    return name


def _download(origin: str, target: Path, digest: str | None, algorithm: str) -> None:
    """Fetches a URL to a temporary file beside the target and renames it when it is whole."""
    import urllib.error  # takes as long to import as all of NumPy
    import urllib.request

    from tqdm import tqdm

    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name + ".")
    try:
        with os.fdopen(handle, "wb") as file, urllib.request.urlopen(origin, timeout=60) as response:
            length = int(response.headers.get("Content-Length") or 0)
            with tqdm(
                total=length or None,
                desc=printable(target.name),
                unit="B",
                unit_scale=True,
                disable=not sys.stderr.isatty(),
            ) as bar:
                while block := response.read(_BLOCK):
                    file.write(block)
                    bar.update(len(block))
            if length and file.tell() != length:
                raise OSError(f"{origin} was interrupted after {file.tell()} of {length} bytes")
        if digest and (came := digest_of(name, algorithm)) != digest:
            raise ValueError(f"{origin}: expected a file with {algorithm} {digest}, got {came}")
        os.chmod(name, 0o644)
        os.replace(name, target)
    except (urllib.error.URLError, TimeoutError) as error:
        raise OSError(f"could not download {origin}: {getattr(error, 'reason', error)}") from error
    finally:
        Path(name).unlink(missing_ok=True)


def _extract(archive: Path, target: Path, known: bool) -> None:
    """Unpacks into a temporary folder that is renamed when all is there.  known: it is the one that was asked for."""
    folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=target.name + "."))
    try:
        unpack(archive, folder, None if known else unpacked_limit(archive.stat().st_size))
        os.chmod(folder, 0o755)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        archive.unlink()
