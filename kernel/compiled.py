"""What has functions over arrays compiled; the plain function stays at hand as ``py_func``."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec, TypeVar, cast

from pipistrelle.platforms.failures import checkpointing
from pipistrelle.schedulers.plan.machine_code import as_python, compiled_by_numba, has_compiler, source_of
from pipistrelle.schedulers.policy import ends_and_shadow
from pipistrelle.server.attempts import accounting
from pipistrelle.server.engine import stalls

_plain: Final = as_python(ends_and_shadow)
_NAMES: Final = ("around", "attempts", "compiled", "loop", "outages", "sets", "state", "waiting")
#: the files whose functions and limits are compiled, or go into what is
_FILES: Final = (
    *(Path(__file__).with_name(f"{name}.py") for name in _NAMES),
    *(source_of(module) for module in (checkpointing, ends_and_shadow, accounting, stalls)),
)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the function compiled by numba when it is first called, without the interpreter's lock.

    The machine code is kept on disk (`compiled_by_numba`). With ``NUMBA_DISABLE_JIT=1`` the function is returned as it
    is. Compiled functions make no arrays, so none is counted by reference.
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
    made = compiled_by_numba(function, _FILES, nogil=True, _nrt=False, no_cfunc_wrapper=True, **options)
    return cast(Callable[_Parameters, _Result], made)


# The schedulers' rules, unchanged
end_of = woven_in(_plain.end_of)
held_until = woven_in(_plain.held_until)
is_late = woven_in(_plain.is_late)
spares = woven_in(_plain.spares)
reservation_of = woven_in(_plain.reservation_of)
