"""This package's own version, which both sides tell each other; the protocol's is in `fields`."""

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """Return the version of the installed package."""
    try:
        return version("pipistrelle")
    except PackageNotFoundError:  # an uninstalled clone
        return "0+uninstalled"
