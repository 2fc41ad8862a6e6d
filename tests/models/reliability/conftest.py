"""The tables of the thesis as they are printed, and its classes."""

from types import SimpleNamespace

import numpy as np
import pytest

from pipistrelle.models.reliability.resources import described
from pipistrelle.models.workloads.classes import get

SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 40960)

#: table 5.1: (upper bound of the range in hours, nodes), from the most reliable
RANGES = (
    (14000, 1470),
    (13500, 2520),
    (13000, 1995),
    (12500, 2940),
    (12000, 1785),
    (11500, 2625),
    (11000, 3255),
    (10500, 4200),
    (10000, 4305),
    (9500, 4620),
    (9000, 3237),
    (8500, 3536),
    (8000, 3640),
    (7500, 832),
)


@pytest.fixture(scope="session")
def demand():
    """Table 4.2 as the analysis has it."""
    return described(get("intrepid-classes"))


@pytest.fixture(scope="session")
def classes(demand):
    """Sizes, rates and times of table 4.2's classes, by size."""
    return [one.sizes for one in demand.classes]


@pytest.fixture(scope="session")
def midpoints():
    """Mean times to failure (h) of Intrepid's nodes: the middles of table 5.1's ranges, shape (40960,)."""
    return np.repeat([upper - 250.0 for upper, _ in RANGES], [count for _, count in RANGES])


@pytest.fixture(scope="session")
def printed():
    """What tables 4.3 to 4.6 and 4.8 print."""
    return SimpleNamespace(
        most=(132, 31, 62, 4154, 3688, 5454, 4993, 11305, 10865, 14956, 12902),
        plain={
            0.1: (119, 28, 56, 3739, 3319, 4909, 4494, 10174, 9778, 13460, 11612),
            0.2: (105, 25, 50, 3323, 2950, 4363, 3994, 9044, 8691, 11965, 10322),
        },
        chained={
            0.1: (119, 41, 59, 3745, 3735, 5278, 5039, 10674, 10908, 14547, 13108),
            0.2: (105, 56, 55, 3008, 3737, 4969, 5087, 9547, 10861, 13819, 13396),
        },
        mttf={16384: 12102.93, 8192: 9826.90, 4096: 8907.62, 2048: 8168.40}
        | dict.fromkeys((1024, 512, 256, 128, 64), 7669.14),
        machine=10250.67,
    )
