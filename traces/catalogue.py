"""The workloads that come with the package, by name."""

from dataclasses import dataclass
from importlib import resources

from pipistrelle.protocol.errors import did_you_mean
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.generator import EPOCH, generate
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
    epoch: float = EPOCH

    def make(self, name: str) -> Workload:
        """Generate the workload anew."""
        return generate(jobs=self.jobs, units=self.units, seed=self.seed, load=self.load, name=name, epoch=self.epoch)


#: {name: recipe}; the file is library/NAME.swf.gz
RECIPES = {
    "demo": Recipe("five weeks of a small cluster, for examples and first tries", 5000, 256, 1, 0.85),
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
    recipe = _recipe(name)
    return f"{recipe.jobs:,} jobs for {recipe.units} units at load {recipe.load}: {recipe.purpose}"


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


def _recipe(name: str) -> Recipe:
    recipe = RECIPES.get(name)
    if recipe is None:
        raise TraceError(
            "no bundled workload has this name",
            where=f"'{name}'",
            hint=did_you_mean(name, names()),
        )
    return recipe
