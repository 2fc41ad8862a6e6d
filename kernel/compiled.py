"""What has functions over arrays compiled; the plain function stays at hand as ``py_func``."""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

from pipistrelle.platforms.failures import checkpointing
from pipistrelle.server.attempts import rules
from pipistrelle.server.engine import stalls

#: the files beside this one whose functions are compiled, or go into what is
_SOURCES: Final = (
    *("around.py", "attempts.py", "compiled.py", "loop.py", "outages.py", "sets.py", "state.py", "waiting.py"),
)
#: those whose functions and limits both engines share
_SHARED: Final = (checkpointing, rules, stalls)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the function compiled by numba when it is first called, without the interpreter's lock.

    The machine code is kept on disk (`_place`); where nothing can be written each process compiles anew. With
    ``NUMBA_DISABLE_JIT=1`` the function is returned as it is. Compiled functions make no arrays, so that none is
    counted by reference.
    """
    return _compiled(function)


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return such a function whose code is put where it is called: a call with a hundred arrays takes long."""
    return _compiled(function, forceinline=True)


def within(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return such a function that compiled ones alone call: a way in for Python with many arrays takes long to make."""
    return _compiled(function, no_cpython_wrapper=True)


def woven_in(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return such a function whose code is put where it is called."""
    return _compiled(function, no_cpython_wrapper=True, forceinline=True)


def shared(*functions: Callable[..., object]) -> None:
    """Let compiled functions call these plain ones, which the reference engine calls, too."""
    if has_compiler():
        from numba.extending import register_jitable

        for function in functions:
            register_jitable(function)


def _compiled(function: Callable[_Parameters, _Result], **options: bool) -> Callable[_Parameters, _Result]:
    if not has_compiler():  # nobody may run it, but whoever asks what the kernel can do comes by here
        return function
    import numba

    njit: Any = numba.njit
    config: Any = numba.config
    wanted = config.CACHE_DIR
    options["no_cfunc_wrapper"] = True
    config.CACHE_DIR = str(_place(wanted))
    try:
        made = njit(nogil=True, cache=True, _nrt=False, **options)(function)
    except RuntimeError:  # there is no place for a cache
        made = njit(nogil=True, _nrt=False, **options)(function)
    finally:
        config.CACHE_DIR = wanted
    return cast(Callable[_Parameters, _Result], made)


def _place(wanted: str) -> Path:
    """Return the folder for machine code, another one for each version of what is compiled.

    The code of one file is put into that of others, but numba looks for changes in a function's own file alone.
    """
    folder = Path(__file__).parent / "__pycache__"
    if wanted:
        folder = Path(wanted)
    elif not os.access(folder.parent, os.W_OK):
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pipistrelle"
    return folder / f"kernel-{_digest()[:16]}"


@cache
def _digest() -> str:
    """Return a digest of all that is compiled."""
    files = [
        *(Path(__file__).with_name(name) for name in _SOURCES),
        *(Path(str(module.__file__)) for module in _SHARED),
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@cache
def has_compiler() -> bool:
    """Tell whether numba is installed."""
    return find_spec("numba") is not None
