"""The functions of `pipistrelle.schedulers.plan.gaps`, compiled by numba.

Where a function exists in two forms, the one named ``..._loop`` is compiled.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pipistrelle.schedulers.plan import book, gaps
from pipistrelle.schedulers.plan.machine_code import as_python, compiled_by_numba, replaced, source_of
from pipistrelle.schedulers.policy import ends_and_shadow

#: {function: the form to compile when a compiled function calls it}
_FORMS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    ends_and_shadow.end_of: as_python(ends_and_shadow).end_of,
    gaps.covering: gaps.covering_loop,
    gaps.lowest_free: gaps.lowest_free_loop,
    gaps.bordering: gaps.bordering_loop,
    gaps.changes_loop: gaps.changes_loop,
    gaps.most_free_loop: gaps.most_free_loop,
    gaps.doubtful: gaps.doubtful_loop,
    gaps.next_marked: gaps.next_marked_loop,
    gaps.count_up: gaps.count_up_loop,
    gaps.slot: gaps.slot,
    gaps.drop: gaps.drop,
    gaps.put: gaps.put,
    gaps.earliest: gaps.earliest_loop,
    gaps.longer_ones: gaps.longer_ones_loop,
    gaps.free_before: gaps.free_before_loop,
    gaps.take: gaps.take,
    gaps.cut_out: gaps.cut_out,
    gaps.give_back: gaps.give_back,
    gaps.mark: gaps.mark,
    gaps.mark_movable: gaps.mark_movable,
    gaps.place: gaps.place,
    gaps.is_untidy: gaps.is_untidy,
    gaps.has_room: gaps.has_room,
}


#: source files of the compiled code
_FILES: Final = (Path(__file__), Path(book.__file__), Path(gaps.__file__), source_of(ends_and_shadow))


for _function, _form in _FORMS.items():
    replaced(_function, _form)

slot = compiled_by_numba(gaps.slot, _FILES)
advance = compiled_by_numba(gaps.advance, _FILES)
first_begin = compiled_by_numba(gaps.first_begin, _FILES)
claim = compiled_by_numba(gaps.claim, _FILES)
give_back = compiled_by_numba(gaps.give_back, _FILES)
mark = compiled_by_numba(gaps.mark, _FILES)
is_untidy = compiled_by_numba(gaps.is_untidy, _FILES)
has_room = compiled_by_numba(gaps.has_room, _FILES)
place_all = compiled_by_numba(gaps.place_all, _FILES)
