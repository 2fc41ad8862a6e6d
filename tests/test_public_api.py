"""What each package offers: the names in ``__all__`` are there and documented."""

from importlib import import_module
from inspect import getdoc, isclass, isroutine

import pytest

#: the command line offers a command, not names
PACKAGES = ("protocol", "platforms", "traces", "server", "schedulers", "studies")
every_package = pytest.mark.parametrize("package", PACKAGES)


@every_package
def test_public_names_can_be_imported(package: str) -> None:
    """Every name in a package's ``__all__`` is an attribute of the package, and is named once."""
    module = import_module(f"pipistrelle.{package}")

    assert module.__all__
    assert len(set(module.__all__)) == len(module.__all__)
    assert not [name for name in module.__all__ if not hasattr(module, name)]


@every_package
def test_public_names_are_documented(package: str) -> None:
    """Every public class and function has a docstring of its own."""
    module = import_module(f"pipistrelle.{package}")
    objects = {name: getattr(module, name) for name in module.__all__}

    assert not [name for name, thing in objects.items() if (isclass(thing) or isroutine(thing)) and not getdoc(thing)]
