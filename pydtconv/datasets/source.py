"""Where data sets lie: PYDTCONV_DATA, then the cache folder, then the network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydtconv.files.download import cache_folder, get_file


@dataclass(frozen=True)
class Download:
    """A file on the network.  folder: where it goes, below the cache's datasets/; extract: it is an archive."""

    url: str
    digest: str
    name: str
    folder: str = ""
    extract: bool = False


def data_folder() -> Path | None:
    """The folder that PYDTCONV_DATA names, or None where it is not set.

    Raises FileNotFoundError when it names what is no folder.
    """
    text = os.environ.get("PYDTCONV_DATA")
    if not text:
        return None
    folder = Path(text).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"PYDTCONV_DATA={text}: expected a folder with data sets, found none")
    return folder


def folders() -> list[Path]:
    """The folders in which data sets are looked for, in that order."""
    given = data_folder()
    return ([given] if given else []) + [cache_folder() / "datasets"]


def find(alternatives: Sequence[Sequence[str]]) -> list[Path] | None:
    """The files of the first alternative that a folder has all of; None where there is none.

    alternatives: each a list of paths below such a folder; "x.gz" is also found without ".gz".
    """
    for folder in folders():
        for names in alternatives:
            paths = [_existing(folder / name) for name in names]
            if all(paths):
                return [path for path in paths if path]
    return None


def _existing(path: Path) -> Path | None:
    choices = [path, path.with_suffix("")] if path.suffix == ".gz" else [path]
    return next((choice for choice in choices if choice.is_file()), None)


def _shown(names: Sequence[str]) -> str:
    return names[0] + (f" (and {len(names) - 1} more)" if names[1:] else "")


def obtain(dataset: str, alternatives: Sequence[Sequence[str]], downloads: Sequence[Download]) -> list[Path]:
    """The files of a data set: found, or else downloaded and then found.

    Raises FileNotFoundError that says which files to put where, when there is neither.
    """
    found = find(alternatives)
    if found:
        return found
    try:
        for file in downloads:
            get_file(
                file.name,
                file.url,
                file_hash=file.digest,
                extract=file.extract,
                cache_subdir=os.path.join("datasets", file.folder),
            )
    except (OSError, ValueError) as error:
        wanted = " or ".join(dict.fromkeys(map(_shown, alternatives)))
        places = " or ".join(str(folder) for folder in folders())
        hint = "" if data_folder() else ", or name the folder that has it: PYDTCONV_DATA=FOLDER"
        raise FileNotFoundError(
            f"the data set {dataset} is not on this machine and could not be downloaded ({error})\n"
            f"  put {wanted}\n  into {places}{hint}"
        ) from error
    found = find(alternatives)
    if not found:
        raise FileNotFoundError(f"the data set {dataset} was downloaded to {cache_folder()}, but lacks its files")
    return found
