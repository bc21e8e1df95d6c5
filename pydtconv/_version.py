"""The version, for modules that may not import the package's root, which knows all of them."""

__version__ = "0.1.0"
