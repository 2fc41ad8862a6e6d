"""Compile functions by numba and cache the machine code.

The cache is valid until one of the source files changes.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any


@cache
def has_compiler() -> bool:
    """Return whether numba is installed."""
    return find_spec("numba") is not None


def source_of(module: ModuleType) -> Path:
    """Return a module's source file, even if mypyc has compiled the module."""
    return Path(str(module.__file__)).with_name(f"{module.__name__.rpartition('.')[2]}.py")


@cache
def as_python(module: ModuleType) -> ModuleType:
    """Return a module with plain Python functions, even if mypyc compiled the module.

    numba can compile only plain functions.
    """
    source = source_of(module)
    if module.__file__ == str(source):
        return module
    spec = spec_from_file_location(module.__name__, source)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def compiled_by_numba(function: Callable[..., Any], files: Iterable[Path], **options: bool) -> Any:
    """Return a function that is compiled at its first call, or read from the cache.

    Compiled functions contain code of functions in other files, but numba checks only a function's own file for
    changes. So the name of the cache's folder has a digest of all ``files``. If no folder is writable, each process
    compiles again.
    """
    import numba

    njit: Any = numba.njit
    config: Any = numba.config
    wanted = config.CACHE_DIR
    config.CACHE_DIR = str(_place(wanted, tuple(files)))
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no place for a cache
        return njit(**options)(function)
    finally:
        config.CACHE_DIR = wanted


def is_cached(function: Callable[..., Any]) -> bool:
    """Return whether the machine code of a function is in the cache.

    Return True for a plain function, which numba does not compile.
    """
    stats = getattr(function, "stats", None)
    if stats is None:
        return True
    folder = stats.cache_path
    return folder is not None and any(Path(folder).glob(f"*.{function.__name__}-*.nbi"))


@cache
def replaced(function: Callable[..., Any], by: Callable[..., Any]) -> None:
    """Make compiled code call ``by`` instead of ``function``."""
    from numba.extending import overload

    overload(function, strict=False)(lambda *_: by)


@cache
def _place(wanted: str, files: tuple[Path, ...]) -> Path:
    """Return the folder that caches the machine code of this version of the files.

    ``wanted`` is the folder that contains it; if it is "", a writable one is chosen.
    """
    folder = files[0].parent / "__pycache__"
    if wanted:
        folder = Path(wanted)
    elif not os.access(folder.parent, os.W_OK):
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pipistrelle"
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return folder / f"{files[0].parent.name}-{digest[:16]}"
