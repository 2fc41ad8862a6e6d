"""Packages that import their public names on first use: a command that needs few of them starts fast."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def import_on_first_use(package: str, names: Mapping[str, str]) -> None:
    """Let a package import a public name when somebody asks for it.

    Parameters
    ----------
    package
        the package's full name; it is being imported.
    names
        {module of the package: the public names in it, separated by spaces}; with none the module itself is public.
    """
    homes = {name: module for module, text in names.items() for name in text.split() or [module]}
    modules = {module for module, text in names.items() if not text}

    class Package(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name not in homes:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            home = import_module(f"{package}.{homes[name]}")
            value = home if name in modules else getattr(home, name)
            self.__dict__[name] = value
            return value

        def __setattr__(self, name: str, value: Any) -> None:
            # Python makes each imported module an attribute of its package; where a public name is that of a module,
            # as with the function `load`, it must not come into the name's place.
            if isinstance(value, ModuleType) and name in homes and name not in modules:
                return
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *homes})

    import_module(package).__class__ = Package
