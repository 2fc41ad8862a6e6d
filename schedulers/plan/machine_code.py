"""Compile functions by numba, and keep the machine code until one of the files that it comes from changes."""

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
    """Tell whether numba is installed."""
    return find_spec("numba") is not None


def source_of(module: ModuleType) -> Path:
    """Return a module's source file; mypyc may have put an extension beside it."""
    return Path(str(module.__file__)).with_name(f"{module.__name__.rpartition('.')[2]}.py")


@cache
def as_python(module: ModuleType) -> ModuleType:
    """Return a module of Python functions, which numba can compile, even if mypyc has compiled this one."""
    source = source_of(module)
    if module.__file__ == str(source):
        return module
    spec = spec_from_file_location(module.__name__, source)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def compiled_by_numba(function: Callable[..., Any], files: Iterable[Path], **options: bool) -> Any:
    """Return the function compiled when it is first called, or as an earlier process has compiled it.

    The code of one file goes into that of others, but numba looks for changes in a function's own file alone. So the
    folder's name has a digest of all ``files``. If nothing can be written, each process compiles anew.
    """
    import numba

    njit: Any = numba.njit
    config: Any = numba.config
    wanted = config.CACHE_DIR
    config.CACHE_DIR = str(_place(wanted, tuple(files)))
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # there is no place for a cache
        return njit(**options)(function)
    finally:
        config.CACHE_DIR = wanted


@cache
def _place(wanted: str, files: tuple[Path, ...]) -> Path:
    """Return the folder for machine code, another one for each version of the files."""
    folder = files[0].parent / "__pycache__"
    if wanted:
        folder = Path(wanted)
    elif not os.access(folder.parent, os.W_OK):
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pipistrelle"
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return folder / f"{files[0].parent.name}-{digest[:16]}"
