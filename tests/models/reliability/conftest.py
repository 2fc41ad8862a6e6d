"""The tables of the thesis as they are printed, and its classes."""

from types import SimpleNamespace

import numpy as np
import pytest

from pipistrelle.models.reliability.resources import described
from pipistrelle.models.workloads.classes import get
from pipistrelle.papers.printed import read_paper


@pytest.fixture(scope="session")
def demand():
    """Table 4.2 as the analysis has it."""
    return described(get("intrepid-classes"))


@pytest.fixture(scope="session")
def classes(demand):
    """Sizes, rates and times of table 4.2's classes, by size."""
    return [one.sizes for one in demand.classes]


@pytest.fixture(scope="session")
def paper():
    """Return the thesis as `pipistrelle study papers` shows it: its tables and its entries' tables."""
    return read_paper("001")


@pytest.fixture(scope="session")
def midpoints(paper):
    """Mean times to failure (h) of Intrepid's nodes: the middles of table 5.1's ranges, shape (40960,)."""
    ranges = paper.printed["ranges"]
    return np.repeat([upper - 250.0 for upper, *_ in ranges], [count for _, count, *_ in ranges])


@pytest.fixture(scope="session")
def printed(paper):
    """What tables 4.3 to 4.6 and 4.8 print."""
    tables = paper.printed
    return SimpleNamespace(
        most=tables["most"],
        plain={float(blocking): nodes for blocking, nodes in tables["one_four"].items()},
        chained={float(blocking): nodes for blocking, nodes in tables["two_three"].items()},
        mttf={size: mttf for size, mttf, *_ in tables["lasts"]},
        reliability={size: (before, after) for size, _, before, after in tables["lasts"]},
        checkpoints={size: (longer, cost) for size, longer, cost in tables["checkpoints"]},
        ranks=tables["ranks"],
        machine=tables["machine"],
        dump=tables["dump"],
    )
