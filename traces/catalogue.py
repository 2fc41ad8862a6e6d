"""The workloads that come with the package, by name."""

from dataclasses import dataclass
from importlib import resources

import numpy as np

from pipistrelle.protocol.base.errors import did_you_mean
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load
from pipistrelle.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a bundled workload was made: the arguments of `generate`, and one line that says what it is good for."""

    purpose: str
    jobs: int
    units: int
    seed: int
    load: float

    def make(self, name: str) -> Workload:
        """Generate the workload anew."""
        from pipistrelle.traces.generator import generate

        return generate(jobs=self.jobs, units=self.units, seed=self.seed, load=self.load, name=name)

    def describe(self) -> str:
        """Return one line about the workload."""
        return f"{self.jobs:,} jobs for {self.units} units at load {self.load}: {self.purpose}"


@dataclass(frozen=True, slots=True)
class CanonicalCase:
    """A bundled workload written by hand: jobs that all arrive at time 0 and run for exactly as long as they ask.

    ``jobs`` are (units, run time in seconds), in the order of arrival; ``notes`` stand in the file's header.
    """

    purpose: str
    units: int
    jobs: tuple[tuple[int, float], ...]
    notes: str

    def make(self, name: str) -> Workload:
        """Return the workload."""
        count = len(self.jobs)
        times = np.array([time for _, time in self.jobs], dtype=float)
        return Workload(
            name=name,
            source="pipistrelle",
            ids=[str(number) for number in range(1, count + 1)],
            submit=np.zeros(count),
            size=np.array([units for units, _ in self.jobs], dtype=np.int64),
            walltime=times,
            runtime=times,
            machine_size=self.units,
            header={"Version": "2.2", "Computer": "none: written by hand", "Note": self.notes},
        )

    def describe(self) -> str:
        """Return one line about the workload."""
        return f"{len(self.jobs)} jobs for {self.units} units: {self.purpose}"


_HOUR = 3600.0

#: {name: recipe}; the file is library/NAME.swf.gz
RECIPES: dict[str, Recipe | CanonicalCase] = {
    "demo": Recipe("five weeks of a small cluster, for examples and first tries", 5000, 256, 1, 0.85),
    "seven-jobs": CanonicalCase(
        "easy starts the last beside the fifth, easy-slices keeps it back for units that the sixth will not need",
        4,
        ((2, _HOUR), (2, _HOUR), (1, 2 * _HOUR), (3, _HOUR), (3, 3 * _HOUR), (3, _HOUR), (1, 4 * _HOUR)),
        "by pipistrelle, after figures 1 and 2 of Horace et al.: seven jobs that arrive one after the other at time 0",
    ),
}


def names() -> list[str]:
    """Return the names of the bundled workloads, sorted."""
    return sorted(RECIPES)


def describe(name: str) -> str:
    """Return one line about a bundled workload.

    Raises
    ------
    TraceError
        if there is none of this name.
    """
    return _recipe(name).describe()


def load_bundled(name: str) -> Workload:
    """Read a bundled workload.

    Raises
    ------
    TraceError
        if there is none of this name.
    """
    _recipe(name)
    file = resources.files("pipistrelle.traces") / "library" / f"{name}.swf.gz"
    with resources.as_file(file) as path:
        return load(path)


def _recipe(name: str) -> Recipe | CanonicalCase:
    recipe = RECIPES.get(name)
    if recipe is None:
        raise TraceError(
            "no bundled workload has this name",
            where=f"'{name}'",
            hint=did_you_mean(name, names()),
        )
    return recipe
