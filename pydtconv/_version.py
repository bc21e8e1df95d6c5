"""The version, for modules that may not import the package's root, which knows all of them."""

__version__ = "0.1.0"


def version() -> str:
    """The version of the package, as `__version__`."""
    return __version__
