"""Compile the kernel's functions with numba.

The attribute ``py_func`` of a compiled function is the plain Python function.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec, TypeVar, cast

from pipistrelle.platforms.failures import checkpointing
from pipistrelle.schedulers.plan.machine_code import as_python, compiled_by_numba, has_compiler, replaced, source_of
from pipistrelle.schedulers.policy import ends_and_shadow
from pipistrelle.server.attempts import accounting
from pipistrelle.server.engine import stalls

_plain: Final = as_python(ends_and_shadow)
_NAMES: Final = ("around", "attempts", "compiled", "loop", "outages", "sets", "state", "waiting")
#: files with compiled functions and constants
_FILES: Final = (
    *(Path(__file__).with_name(f"{name}.py") for name in _NAMES),
    *(source_of(module) for module in (checkpointing, ends_and_shadow, accounting, stalls)),
)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the function so that numba compiles it at its first call.

    The compiled function runs without the GIL. `compiled_by_numba` caches the machine code on disk. With
    ``NUMBA_DISABLE_JIT=1`` this returns the plain function. Compiled functions must not allocate arrays, because
    reference counting is off.
    """
    return _compiled(function)


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the function compiled, with its code inlined into its callers.

    Without inlining, each call would pass about a hundred arrays, which is slow.
    """
    return _compiled(function, forceinline=True)


def within(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the function compiled so that only compiled functions can call it.

    It takes less time to compile than with `compiled`.
    """
    return _compiled(function, no_cpython_wrapper=True)


def woven_in(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the function compiled and inlined; only compiled functions can call it."""
    return _compiled(function, no_cpython_wrapper=True, forceinline=True)


def shared(*functions: Callable[..., object]) -> None:
    """Compile plain functions of the reference engine, for use in the kernel.

    The kernel's compiled functions can then call them.
    """
    if has_compiler():
        from numba.extending import register_jitable

        for function in functions:
            register_jitable(function)


def counts_bits_by(function: Callable[[int], int]) -> None:
    """Set the function that counts set bits in the compiled rules of the schedulers."""
    if has_compiler():
        replaced(_plain.bits_in, getattr(function, "py_func", function))


def _compiled(function: Callable[_Parameters, _Result], **options: bool) -> Callable[_Parameters, _Result]:
    if not has_compiler():  # the kernel cannot run, but its subset can still be checked
        return function
    made = compiled_by_numba(function, _FILES, nogil=True, _nrt=False, no_cfunc_wrapper=True, **options)
    return cast(Callable[_Parameters, _Result], made)


# the rules of the Python schedulers, unchanged
if has_compiler():
    replaced(_plain.end_of, _plain.end_of)
end_of = woven_in(_plain.end_of)
held_until = woven_in(_plain.held_until)
is_late = woven_in(_plain.is_late)
spares = woven_in(_plain.spares)
reservation_of = woven_in(_plain.reservation_of)
cut_short = woven_in(_plain.cut_short)
opening = woven_in(_plain.opening)
Closed, Releases = _plain.Closed, _plain.Releases
