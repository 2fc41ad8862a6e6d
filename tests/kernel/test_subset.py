"""Errors for runs that the kernel does not support."""

import subprocess
import sys
from dataclasses import replace

import pytest

from pipistrelle.kernel import compiled
from pipistrelle.kernel.kernel import simulate, why_not
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.plan.machine_code import as_python
from pipistrelle.schedulers.policy import ends_and_shadow
from pipistrelle.server.errors import SetupError
from pipistrelle.server.setup.setup import Dispersion

OUTSIDE = {
    "its backfilling rule": RunSpec(scheduler="conservative"),
    "its order": RunSpec(scheduler="easy", order="maui"),
    "its placement is not": RunSpec(scheduler="easy", placement="best-fit"),
    "one order for every job": RunSpec(scheduler="easy", dual_ended=("nodes<4",)),
    "more than an order": RunSpec(scheduler="maui"),
    "its scheduler preempts jobs": RunSpec(preempt_type="qos", preempt=("high=low",)),
    "a program of its own": RunSpec(scheduler="./mine --at {endpoint}"),
    "--poll": RunSpec(poll="5s"),
    "without some of their nodes": RunSpec(
        platform="demo", failures=("exponential,mtbf=60d",), repair="1h", spares="1%"
    ),
}


@pytest.mark.parametrize("reason", OUTSIDE)
def test_the_first_reason_is_told(reason: str) -> None:
    """Each part outside the subset is named, and a run with it is refused."""
    spec = OUTSIDE[reason]
    setup = load_setup(spec)
    assert reason in (why_not(setup, spec) or "")
    with pytest.raises(SetupError, match="the kernel cannot do this run"):
        simulate(setup, spec)


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "filler"])
def test_runs_of_the_subset_have_no_reason(scheduler: str) -> None:
    """Orders, backfilling rules and placements by name are within it."""
    spec = RunSpec(scheduler=scheduler, failures=("exponential,mtbf=60d",), repair="1h", platform="demo")
    assert why_not(load_setup(spec), spec) is None


def test_what_the_kernel_does_not_know_of_is_outside() -> None:
    """A setup with something new is not simulated without it."""
    spec = RunSpec()
    setup = load_setup(spec)
    platform = Platform(name="ring", topology=TopologyRule("torus", (4, 4)), pools=(Pool(name="all", nodes=16),))
    assert why_not(setup, spec) is None
    assert why_not(replace(setup, dispersion=Dispersion(platform, 0.1)), spec) == "it has dispersion"
    assert why_not(replace(setup, conditions={"w0!1": ()}), spec) == "some of its jobs wait for others"


def test_without_numba_the_reason_is_that() -> None:
    """Without Numba the check works, and the error says what to install."""
    program = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numba':\n"
        "            raise ModuleNotFoundError(name)\n"
        "import importlib.util\n"
        "known = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'numba' else known(name, *more)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from pipistrelle.kernel.kernel import why_not\n"
        "from pipistrelle.runs.description.setup import load_setup\n"
        "from pipistrelle.runs.description.spec import RunSpec\n"
        "print(why_not(load_setup(RunSpec()), RunSpec()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "numba is not installed (pip install 'pipistrelle[study]')" in done.stdout


@pytest.mark.parametrize(
    "name", ["end_of", "held_until", "is_late", "spares", "reservation_of", "cut_short", "opening"]
)
def test_the_kernel_compiles_the_rules_of_the_schedulers(name: str) -> None:
    """A rule that changes for the reference engine changes for the kernel."""
    assert getattr(compiled, name).py_func is getattr(as_python(ends_and_shadow), name)
