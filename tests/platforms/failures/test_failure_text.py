"""The language of --failures and --repair, fitted models as TOML, and the library of models."""

import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures import catalogue as failure_catalogue
from pipistrelle.platforms.failures.durations import Exponential, Fixed, Lognormal, Weibull
from pipistrelle.platforms.failures.fitted import parse_model, to_toml
from pipistrelle.platforms.failures.outage import OutageError
from pipistrelle.platforms.failures.text import parse_durations, parse_failures, parse_seconds

HOUR, DAY = 3600.0, 86400.0
MACHINE = homogeneous(1490, "grizzly")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5h", 5400),
        ("5 d", 432000),
        ("2min", 120),
        ("2m", 120),
        ("1y", 31557600),
        ("1w", 604800),
    ],
)
def test_lengths_of_time(text, seconds):
    """A number and a unit; without one it means seconds."""
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("5d", Fixed(5 * DAY)),
        ("fixed,mttr=5d", Fixed(5 * DAY)),
        ("exponential,mttr=1h", Exponential(HOUR)),
        ("weibull, mttr=1h, shape=1", Weibull(HOUR, 1.0)),
        ("weibull,scale=1h,shape=2", Weibull(HOUR, 2.0)),
        ("lognormal,median=1h,sigma=1.2", Lognormal(HOUR, 1.2)),
        ("lognormal,mttr=1h,sigma=1.2", Lognormal.of_mean(HOUR, 1.2)),
    ],
)
def test_repairs(text, law):
    """A time alone is fixed; a distribution takes its mean from mttr."""
    assert parse_durations(text) == law


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("exponential,mtbf=10y", Exponential(10 * 31557600.0)),
        ("exponential,smtbf=24h", Exponential(24 * HOUR * 1490)),
        ("exponential,smtbf=24h,of=20000", Exponential(24 * HOUR * 20000)),
        ("exponential,smtbf=24h,of=20000,factor=32", Exponential(24 * HOUR * 20000 / 32)),
        ("exponential,smtbf=24h,of=20000,scope=system", Exponential(24 * HOUR * 20000 / 1490)),
        ("exponential,smtbf=24h,scope=system", Exponential(24 * HOUR)),
        ("exponential,mtbf=1490h,scope=system", Exponential(HOUR)),
        ("exponential,smtbf=1h,domain=149", Exponential(10 * HOUR)),
        ("weibull,scale=10h,shape=1.5", Weibull(10 * HOUR, 1.5)),
    ],
)
def test_failures_of_a_machine(text, law):
    """MTBF is per node, SMTBF per machine or for one of another size; a factor multiplies the rate."""
    uptime = parse_failures(text).source(MACHINE, Fixed(1)).model.uptime

    assert type(uptime) is type(law)
    assert uptime.mean == pytest.approx(law.mean)


def test_the_base_line_of_lanl():
    """24 hours on 20,000 nodes is an SMTBF of 322 h on Grizzly's 1490, and of 10 h at 32 times the rate."""
    for factor, hours in ((1, 322.15), (32, 10.07)):
        source = parse_failures("exponential,smtbf=24h,of=20000,scope=system").source(MACHINE, Fixed(60), factor)
        assert source.model.uptime.mean / HOUR == pytest.approx(hours, abs=0.01)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exponentail,mtbf=3h", "there is no failure model 'exponentail'. Did you mean 'exponential'?"),
        ("lanl-21", "there is no failure model 'lanl-21'. Did you mean 'lanl-2"),
        ("fixed,mtbf=3h", "there is no failure model 'fixed'"),
        ("exponential", "'exponential' needs one length of time: expected mtbf, or smtbf, found none"),
        ("weibull,shape=2", "expected mtbf or scale, or smtbf, found none"),
        ("exponential,mtbf=-1h", "a value of 'mtbf' is not above zero: expected a finite time above 0, found '-1h'"),
        ("exponential,mtbf=0", "a value of 'mtbf' is not above zero"),
        ("exponential,mtbf=1e999h", "a value of 'mtbf' is not above zero"),
        ("exponential,smtbf=1q", "a value of 'smtbf' has an unknown unit: expected one of ms, s, min"),
        ("exponential,mtbf=soon", "a value of 'mtbf' cannot be read"),
        ("exponential,mtbf=1h,smtbf=3h", "needs one length of time"),
        ("exponential,mtbf=1h,mtbf=2h", "the parameter 'mtbf' is given twice"),
        ("exponential,mtbf", "a parameter cannot be read: expected KEY=VALUE, found 'mtbf'"),
        ("exponential,mtbf=1h,shap=2", "'exponential' has no parameter 'shap'"),
        ("weibull,mtbf=1h,shap=2", "'weibull' has no parameter 'shap'. Did you mean 'shape'?"),
        ("weibull,mtbf=1h", "'weibull' needs the parameter 'shape'"),
        ("weibull,mtbf=1h,shape=x", "the parameter 'shape' is no number: found 'x'"),
        ("weibull,mtbf=1h,shape=900", "a shape is out of range"),
        ("exponential,mtbf=1h,of=3", "the key 'of' goes with smtbf only"),
        ("lanl-20,of=3", "the key 'of' goes with smtbf only"),
        ("exponential,smtbf=1h,of=0", "the parameter 'of' is no number of nodes"),
        ("exponential,mtbf=1h,factor=0", "a reliability factor is out of range"),
        ("exponential,mtbf=1h,scope=rack", "a scope is unknown: expected 'node' or 'system', found 'rack'"),
        ("exponential,mtbf=1h,domain=:3", "a failure domain has no name"),
        ("exponential,mtbf=1h,domain=x", "the parameter 'domain' is no number of nodes"),
        ("exponential,mtbf=1h,domain=9999", "the size of a failure domain is out of range"),
        ("exponential,mtbf=1h,pool=cpu", "platform 'grizzly' has no pool 'cpu'. Known: all."),
    ],
)
def test_wrong_failures(text, message):
    """Each mistake has one message, with the text's name and what to write instead."""
    with pytest.raises(OutageError) as caught:
        parse_failures(text, failure_catalogue.specs()).source(MACHINE, Fixed(1))

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-5d", "--repair: a repair time is not above zero"),
        ("0", "--repair: a repair time is not above zero"),
        ("exponental,mttr=1h", "--repair: there is no repair time 'exponental'. Did you mean 'exponential'?"),
        ("exponential,mtbf=1h", "--repair: 'exponential' has no parameter 'mtbf'. Known: mean, mttr."),
        ("lognormal,mttr=1h", "--repair: 'lognormal' needs the parameter 'sigma'"),
    ],
)
def test_wrong_repairs(text, message):
    """The same for repairs."""
    with pytest.raises(OutageError) as caught:
        parse_durations(text)

    assert message in str(caught.value)


def test_a_repair_is_needed():
    """A model without repairs needs one."""
    with pytest.raises(OutageError, match=r"the repair time is missing.*Give --repair"):
        parse_failures("titan-2016", failure_catalogue.specs()).source(MACHINE, None)


@pytest.mark.parametrize("name", failure_catalogue.names())
def test_a_model_of_the_library(name):
    """Each has its file's name, a source, intervals that contain its parameters, and survives writing."""
    model = failure_catalogue.get(name)

    assert model.name == name
    assert model.description
    assert "outages" in model.source
    assert parse_model(to_toml(model), name) == model
    assert failure_catalogue.describe(name).startswith(model.description)
    for fitted in filter(None, (model.failures, model.repair)):
        assert fitted.observations > 100
        for key in ("mean", "scale", "shape", "median", "sigma"):
            interval = getattr(fitted, f"{key}_interval")
            assert interval is None or interval[0] < getattr(fitted, key) < interval[1]


def test_the_library_holds_these_models():
    """Names are in alphabetical order; there are no others."""
    assert failure_catalogue.names() == (
        "lanl-16",
        "lanl-18",
        "lanl-19",
        "lanl-2",
        "lanl-20",
        "titan-2016",
        "titan-new",
    )
    with pytest.raises(OutageError, match="Did you mean 'titan-2016'"):
        failure_catalogue.get("titan-2061")


MODEL = """name = "m"
nodes = 4
[failures]
distribution = "weibull"
scale = 3600.0
shape = 0.7
"""


def test_a_user_defined_model():
    """Only name, nodes and the parameters are needed."""
    assert parse_model(MODEL, "m.toml").spec().uptime == Weibull(3600.0, 0.7)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("shape = 0.7", "", "m.toml: the key 'shape' is missing"),
        ("shape = 0.7", "shape = -0.7", "m.toml: a shape is out of range"),
        ("shape = 0.7", "shap = 0.7", "m.toml: failures: this is not a failure model"),
        ("shape = 0.7", "shape = 'x'", "m.toml: failures.shape: this is not a failure model"),
        ("weibull", "weibul", "m.toml: failures.distribution: this is not a failure model"),
        ("nodes = 4", "nodes = 0", "m.toml: nodes: a count is too small"),
        ("nodes = 4", "nodes 4", "m.toml, line 2, column 7: this is not TOML"),
    ],
)
def test_wrong_models(old, new, message):
    """The message has file and key."""
    with pytest.raises(OutageError) as caught:
        parse_model(MODEL.replace(old, new), "m.toml")

    assert message in str(caught.value)
