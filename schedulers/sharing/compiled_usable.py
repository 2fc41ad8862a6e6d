"""Compile the function `usable` of the module sharing.usable with numba."""

from functools import cache
from pathlib import Path
from typing import Any

from pipistrelle.schedulers.plan.machine_code import compiled_by_numba, has_compiler
from pipistrelle.schedulers.sharing import usable as forms


@cache
def fast_usable() -> Any:
    """Return `usable`, compiled if numba is installed."""
    if not has_compiler():
        return forms.usable
    return compiled_by_numba(forms.usable_loop, (Path(__file__), Path(forms.__file__)))
