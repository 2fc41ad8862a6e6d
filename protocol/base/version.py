"""This package's own version, which both sides tell each other; the protocol's is in `fields`."""


def package_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version  # it imports a mail reader, for one text

    try:
        return version("pipistrelle")
    except PackageNotFoundError:  # an uninstalled clone
        return "0+uninstalled"
