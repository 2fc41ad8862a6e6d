"""docs/how-to/workload-tools.md: steps, classes and LANL's options, as the code has them."""

import re

import pytest

from pipistrelle.cli.doors import GROUPS
from pipistrelle.cli.workload import edit  # noqa: F401 - which fills STEPS
from pipistrelle.cli.workload.steps import STEPS
from pipistrelle.models.workloads.options import parse_gaps, set_walltimes
from pipistrelle.models.workloads.summary import RUNTIMES
from pipistrelle.traces.catalogue import load_bundled
from pipistrelle.traces.transforms.join import copy_ids

PAGE = "docs/how-to/workload-tools.md"


def test_every_step_is_on_the_page(section, table):
    """The table at the top names the steps that can follow each other; all are commands of the group."""
    rows = table(section(PAGE, "Describe and change workloads"))

    assert [row[0].strip("`") for row in rows] == list(STEPS)
    assert set(STEPS) < set(GROUPS["Inputs"]["workload"].doors or ())


def test_the_classes_of_run_times(section):
    """The classes on the page are those of the code."""
    text = " ".join(section(PAGE, "Describing").split())
    minutes = [name.split()[0] for _, name in RUNTIMES if name.endswith("min")]
    hours = [name.split()[0] for _, name in RUNTIMES if name.endswith("h")]

    assert f"below {' and '.join(minutes)} minutes, {', '.join(hours[:-1])} and {hours[-1]} hours, and more" in text


@pytest.mark.parametrize("heading", ["Scaling", "Shuffling"])
def test_every_form_can_be_read(heading, section, table):
    """The options accept each requested time and each gap between submissions in the tables."""
    import numpy as np

    demo = load_bundled("demo").select(range(10))
    forms = [form for row in table(section(PAGE, heading)) for form in re.findall(r"`([^`]+)`", row[0])]
    assert len(forms) > 2
    for form in forms:
        if heading == "Scaling":
            set_walltimes(demo, form, np.random.Generator(np.random.PCG64(1)))
        else:
            parse_gaps(form)


def test_equivalents_of_lanls_options_exist(section, table):
    """Each option listed as equivalent is a step with options that it has."""
    for _, ours in table(section(PAGE, "For users of LANL's simulator")):
        for text in re.findall(r"`([^`]+)`", ours):
            words = text.split()
            step = next((word for word in words if word in STEPS), None)
            if step is None:
                continue
            known = {name for parameter in STEPS[step].params for name in parameter.opts}
            options = [word for word in text.partition(" then ")[0].split() if word.startswith("--")]
            assert set(options) <= known, text


def test_the_ids_of_copies_on_the_page(section):
    """The ids in the example are those of the code."""
    assert "jobs 11 and 28490, P is 100000, and the first copies are 100011 and 128490" in " ".join(
        section(PAGE, "Copying").split()
    )
    assert copy_ids(["11", "28490"], 1) == ["100011", "128490"]
