"""The version of the package: its only home, which pyproject.toml reads."""

__version__ = "1.0.0"


def version() -> str:
    """The version of the package, as `__version__`."""
    return __version__
