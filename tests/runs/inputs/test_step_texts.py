"""Changes of a workload as texts: the Python API reads them as the command line does."""

import click
import pytest

import pipistrelle.cli.workload.edit  # noqa: F401 - registers the steps
from pipistrelle.cli.workload.steps import parse_transform
from pipistrelle.protocol.base.errors import InputError
from pipistrelle.runs.inputs.step_texts import parse_steps

TEXTS = [
    "scale --load 0.9",
    "scale --load=0.9 --machine-size 64",
    "scale --wallclock-limit x2",
    "filter --user 1 --user 2 --first 30 --clean",
    "filter --size 1:64 then scale --arrivals 50% then shuffle",
    "merge a.swf 'b c.swf' --align zero --apart",
    "copy --times 3 --shift -5:5 --draw once --seed 7",
    "redraw --model grizzly --duration 1y --load 0.85 --serial 0.2",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_mean_the_same_as_on_the_command_line(text):
    """Both parsers give equal steps."""
    assert parse_steps(text, "run") == list(parse_transform([text], click.Context(click.Command("run"))))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scal --load 1", r"run: 'scal --load 1': there is no step 'scal'.*'scale --load 0\.9'.*Did you mean 'scale'"),
        ("", r"a step is missing: expected a text such as 'scale --load 0\.9'"),
        ("filter --first 3 then", "a step is missing"),
        ("scale --laod 1", r"step scale has no option '--laod'\. Did you mean '--load'"),
        ("merge --others a", "step merge has no option '--others'"),
        ("scale --load x", "load: a value of the wrong type: expected a number, found 'x'"),
        ("copy", r"the key 'times' is missing.*'scale --load 0\.9'"),
        ("scale 0.9", r"unexpected word '0\.9'.*Options begin with '--'"),
        ("scale --load", "--load needs a value"),
        ("filter --clean=yes", "--clean takes no value: found 'yes'"),
        ("scale 'x", "cannot be split into words"),
    ],
)
def test_texts_that_cannot_be_read(text, message):
    """The error names the text and the wrong part, and shows an example."""
    with pytest.raises(InputError, match=message):
        parse_steps(text, "run")
