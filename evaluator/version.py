"""The version of the package, which what it writes bears."""

__version__ = "0.1.0"
