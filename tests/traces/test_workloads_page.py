"""The page docs/reference/workloads.md: its examples run, and its numbers are the code's."""

import re
import subprocess
import sys

import pytest


@pytest.fixture
def page(project_root) -> str:
    """Return the page's text."""
    return (project_root / "docs" / "reference" / "workloads.md").read_text(encoding="utf-8")


def test_examples_run(page, tmp_path):
    """Each Python example runs unchanged, in its own folder."""
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    outputs = []
    for block in blocks:
        run = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=False, capture_output=True, text=True)
        assert run.stderr == ""
        outputs.append(run.stdout)
    assert "5,000" in outputs[0]
    assert "0.900" in outputs[2]


def test_numbers_on_the_page(page):
    """Shares, run times and requested times on the page are the generator's."""
    from pipistrelle.traces import generator

    last = generator.RUNTIME_MIN << generator.RUNTIME_DOUBLINGS
    assert f"from {generator.RUNTIME_MIN} s to {last:,} s" in page
    minutes = [time // 60 for time in generator.ROUND_TIMES if time < 3600]
    hours = [time // 3600 for time in generator.ROUND_TIMES if time >= 3600]
    text = " ".join(page.split())
    rounds = (
        f"{', '.join(map(str, minutes[:-1]))} and {minutes[-1]} minutes, "
        f"and {', '.join(map(str, hours[:-1]))} and {hours[-1]} hours"
    )
    assert rounds in text
    assert f"{generator.UNDER_SHARE:.0%}".replace("%", " %") in text
    assert f"{generator.EXACT_SHARE:.0%}".replace("%", " %") in text
    assert f"**Users**: there are {generator.USERS} users in {generator.GROUPS} groups" in text
