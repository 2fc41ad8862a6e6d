"""docs/how-to/workload-tools.md: steps, classes and options of LANL's, as the code has them."""

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
    """The table at the head names the steps that can follow each other, all of which are commands of the group."""
    rows = table(section(PAGE, "Describe and change workloads"))

    assert [row[0].strip("`") for row in rows] == list(STEPS)
    assert set(STEPS) < set(GROUPS["Inputs"]["workload"].doors or ())


def test_the_classes_of_run_times(section):
    """Those that the code has."""
    text = " ".join(section(PAGE, "Describing").split())
    minutes = [name.split()[0] for _, name in RUNTIMES if name.endswith("min")]
    hours = [name.split()[0] for _, name in RUNTIMES if name.endswith("h")]

    assert f"below {' and '.join(minutes)} minutes, {', '.join(hours[:-1])} and {hours[-1]} hours, and more" in text


@pytest.mark.parametrize("heading", ["Scaling", "Shuffling"])
def test_every_form_can_be_read(heading, section, table):
    """Each requested time and each gap between submissions in the tables is one that the options take."""
    import numpy as np

    demo = load_bundled("demo").select(range(10))
    forms = [form for row in table(section(PAGE, heading)) for form in re.findall(r"`([^`]+)`", row[0])]
    assert len(forms) > 2
    for form in forms:
        if heading == "Scaling":
            set_walltimes(demo, form, np.random.Generator(np.random.PCG64(1)))
        else:
            parse_gaps(form)


def test_options_named_for_users_of_lanls_exist(section, table):
    """What is said to do the same is a step with options that it has."""
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
    """The example is what comes out."""
    assert "of jobs 11 and 28490 the first copies are 100011 and 128490" in section(PAGE, "Copying")
    assert copy_ids(["11", "28490"], 1) == ["100011", "128490"]
