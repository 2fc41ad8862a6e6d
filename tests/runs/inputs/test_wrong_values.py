"""Values of any form in a description of a run, a study or a machine are refused with one message."""

import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipistrelle.platforms.read import parse_platform
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.toml import MOST_CHARACTERS, MOST_PARTS, toml_value
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import convert_spec
from pipistrelle.studies.trials.study import Study

scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 70), st.floats(), st.text(max_size=3))
keys = st.sampled_from(
    [*RunSpec.__struct_fields__, "step", "keep", "load", "name", "nodes", "kind", "axes", "run", "count", "model", "x"]
)
values = st.recursive(
    scalars | st.sampled_from(["filter", "scale", "merge", "demo", "easy", "2d"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
tables = st.dictionaries(keys, values, max_size=4)
EASY: dict[str, Any] = {"platform": "demo", "workload": "demo", "scheduler": "easy"}


@given(tables)
@example({"transform": [{}]})
@example({"transform": [{"step": "other"}]})
@example({"transform": [{"step": "filter", "x": 1}]})
def test_a_run_of_any_values_is_a_run_or_one_message(table):
    """No value of a description ends with an error that is not ours."""
    with suppress(PipistrelleError):
        convert_spec(EASY | table, "run.toml")


@given(run=tables, axes=st.dictionaries(keys, values, max_size=2), rest=tables)
@example(run={"transform": [{}]}, axes={}, rest={})
@example(run={}, axes={"mtbf-scale": [math.nan, float("nan")]}, rest={})
@example(run={}, axes={"seed": [1, 1]}, rest={})
def test_a_study_of_any_values_is_a_study_or_one_message(run, axes, rest):
    """The keys of its run, its axes, its metrics and its replicas may be anything."""
    given_keys = {key: value for key, value in rest.items() if key in ("metrics", "replicas")}
    with suppress(PipistrelleError):
        Study(EASY | run, axes, where="study.toml", **given_keys)


@pytest.mark.parametrize("key", ["a", "'a b'", '"a"'])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "[[{}]]", "x = {{ {} = 1 }}"])
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(key, form):
    """The parser's time and memory grow with the square of the parts."""
    for parts, found in ((MOST_PARTS, "unknown key"), (MOST_PARTS + 1, "line 2: a key has too many parts")):
        with pytest.raises(PipistrelleError, match=found):
            parse_platform("# a machine\n" + form.format(" . ".join([key] * parts)), "machine.toml")


def test_a_long_toml_text_is_refused():
    """The message gives the limit; a text of that length is read."""
    with pytest.raises(PipistrelleError, match="too long for TOML: expected at most 2,097,152 characters"):
        parse_platform("#" * (MOST_CHARACTERS + 1), "machine.toml")
    with pytest.raises(PipistrelleError, match="the key 'name' is missing"):
        parse_platform("#" * MOST_CHARACTERS, "machine.toml")


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("[[pools]]\n", "the key 'name' is missing"),
        ("name = 'x'\n[[pools]]\n", "the key 'name' is missing"),
        ("name = 'x'\npools = [[]]\n", "expected a table"),
        (f"name = 'x'\n[[pools]]\nname = 'p'\nnodes = {toml_value(math.inf)}\n", "wrong type"),
        ("name = 'x'\n[[pools]]\nname = 'p'\nnodes = 1\n[[failures]]\n", "the key 'model' is missing"),
    ],
)
def test_a_machine_with_an_empty_table_is_one_message(text, fragment):
    """The message names the key that is missing, or what was found."""
    with pytest.raises(PipistrelleError, match=fragment):
        parse_platform(text, "machine.toml")
