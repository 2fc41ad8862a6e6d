"""The page in a real browser: it draws, it can be used, nothing leaves it, no text becomes markup."""

import base64
import hashlib
import io
import json
import re
import shutil
from itertools import pairwise

import duckdb
import numpy as np
import pytest
from matplotlib.image import imread
from tests.reports.page.conftest import EVIL

from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.traces.generator import generate

PANELS = ["summary", "time", "machine", "distributions", "heat", "groups", "failures", "worst", "about"]
KEY = "document.getElementById('gantt-0').dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0]}))"
SETTLE = """
const done = arguments[arguments.length - 1];
setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 120);  // curves follow with a pause
"""
COLOURS = """
return [...document.querySelectorAll("canvas")].map((canvas) => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), seen = new Set();
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3]) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
  }
  return seen.size;
});
"""


@pytest.fixture
def page(show, failing_run):
    """Return the page of the run with failures, as it opens."""
    return show(failing_run)


def settle(page):
    """Wait until everything has followed a change."""
    page.driver.execute_async_script(SETTLE)


def shown_time(page):
    """Return the time range of the curves, as the page states it."""
    return page.text("#time .bar output")


def image(page):
    """Return a digest of the machine canvas."""
    return hashlib.sha256(page.run("return document.getElementById('gantt-0').toDataURL()").encode()).hexdigest()


def choose(page, element, option):
    """Choose an option of a list by its text, as a user does."""
    page.run(
        """
        const list = document.getElementById(arguments[0]);
        list.value = [...list.options].find((one) => one.textContent === arguments[1]).value;
        list.dispatchEvent(new Event("change"));
        """,
        element,
        option,
    )
    settle(page)


def test_every_panel_draws_and_nothing_goes_wrong(page):
    """Each section has its heading, no canvas is blank, no error is logged, no request leaves the page."""
    assert page.run("return [...document.querySelectorAll('main > section')].map((one) => one.id)") == PANELS
    links = page.run("return [...document.querySelectorAll('nav a')].map((one) => one.hash.slice(1))")
    assert links == PANELS
    colours = page.run(COLOURS)
    assert len(colours) >= 12
    assert min(colours) > 3
    assert [one for one in page.driver.get_log("browser") if one["level"] != "INFO"] == []
    events = [json.loads(one["message"])["message"] for one in page.driver.get_log("performance")]
    asked = [one["params"] for one in events if one["method"] == "Network.requestWillBeSent"]
    ours = page.file.as_uri()
    assert {one["request"]["url"] for one in asked if one["documentURL"] == ours} == {ours}


def test_no_text_becomes_markup(page):
    """Scripts and images in users, queues, ids, reasons and causes are shown as text, and none of them runs."""
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.run("return window.hacked ?? null") is None
    assert page.run("return document.querySelectorAll('img, main script, header script').length") == 0
    assert EVIL in page.text("#filter-user")
    assert EVIL in page.text("#groups")
    page.run(
        """
        const box = document.getElementById("gantt-job");
        box.value = arguments[0];
        box.dispatchEvent(new Event("change"));
        """,
        f"{EVIL} 7",
    )
    said = page.text("#machine .detail")
    assert f"Jobw0!{EVIL} 7" in said
    assert f"Why{EVIL}" in said
    assert page.run("return window.hacked ?? null") is None


def test_the_policy_lets_nothing_out(page):
    """A script that is put into the page does not run, and a request is refused."""
    page.run(
        """
        const one = document.createElement("script");
        one.textContent = "window.late = 1";
        document.body.append(one);
        """
    )
    refused = page.driver.execute_async_script(
        "const done = arguments[0]; fetch('data:text/plain,x').then(() => done(false), () => done(true));"
    )

    assert page.run("return window.late ?? null") is None
    assert refused
    page.driver.get_log("browser")  # which has both refusals


def test_keys_zoom_and_move(page):
    """The machine and all curves follow keys: into the time, along it, into the units, back to all."""
    whole, first = shown_time(page), image(page)
    for _ in range(12):
        page.run(KEY, "+")
    settle(page)
    near, drawn = shown_time(page), image(page)
    assert near != whole
    assert drawn != first
    begin, end = re.findall(r"\d\d:\d\d:\d\d", near)
    assert begin != end
    page.run(KEY, "ArrowRight")
    settle(page)
    assert shown_time(page) != near
    moved = image(page)
    page.run(KEY, "]")
    settle(page)
    assert image(page) != moved
    assert near.split()[0] in page.run("return document.querySelector('#gantt-0').getAttribute('aria-label')")
    page.run(KEY, "Home")
    settle(page)
    assert shown_time(page) == whole
    assert image(page) == first


def test_the_mouse_zooms_and_selects(page):
    """Dragging across a curve zooms in; the wheel zooms only with Ctrl; a click selects a job."""
    from selenium.webdriver import ActionChains

    whole = shown_time(page)
    chart = page.driver.find_element("css selector", "#chart-utilisation .u-over")
    page.run("arguments[0].scrollIntoView({block: 'center'})", chart)
    mouse = ActionChains(page.driver, duration=20)
    mouse.move_to_element_with_offset(chart, -200, 0).click_and_hold().move_by_offset(150, 0).move_by_offset(10, 0)
    mouse.release().perform()
    settle(page)
    dragged = shown_time(page)
    assert dragged != whole
    wheel = """
    const canvas = document.getElementById("gantt-0"), box = canvas.getBoundingClientRect();
    const at = {clientX: box.left + 300, clientY: box.top + 50, cancelable: true};
    canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, ctrlKey: arguments[0], ...at}));
    """
    page.run(wheel, False)
    settle(page)
    assert shown_time(page) == dragged
    page.run(wheel, True)
    settle(page)
    assert shown_time(page) != dragged
    page.run("document.querySelector('.answers button.link').click()")
    settle(page)
    job = page.text(".answers button.link")
    assert f"Job{job}" in page.text("#machine .detail")
    page.run(
        """
        const canvas = document.getElementById("gantt-0"), box = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 600, clientY: box.top + 100}));
        """
    )
    assert re.search(r"node \d+", page.text(".tip"))


def test_filters_choose_jobs(page):
    """Choosing a user, then a size, changes counts, figures and drawings; resetting restores all jobs."""
    before, drawn = page.text("form.bar output"), image(page)
    choose(page, "filter-user", "user 3")
    by_user = page.text("form.bar output")
    assert before == "500 of 500 jobs"
    assert by_user != before
    assert "selected jobs" in page.text("#summary thead")
    assert image(page) != drawn
    page.run(
        "const box = document.getElementById('filter-least'); box.value = 8; box.dispatchEvent(new Event('change'));"
    )
    settle(page)
    assert page.text("form.bar output") != by_user
    page.run("document.getElementById('filter-clear').click()")
    settle(page)
    assert page.text("form.bar output") == before
    assert image(page) == drawn


@pytest.mark.parametrize("colour", ["queue", "size", "final state", "wait"])
def test_jobs_are_coloured_by(page, colour):
    """Each way to colour the machine draws otherwise and has a legend."""
    before = image(page)
    choose(page, "gantt-colour", colour)

    assert image(page) != before
    assert page.run("return document.querySelectorAll('#machine .legend .sample').length") >= 3


def test_everything_has_a_name(page):
    """Everything a screen reader finds has a name: drawings, fields, buttons, tables; headings are in order."""
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    wanted = {"button", "combobox", "textbox", "spinbutton", "image", "link", "table", "region"}
    nameless = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in wanted and not node.get("name", {}).get("value")
    ]
    levels = page.run("return [...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))")

    assert nameless == []
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.run("return document.querySelectorAll('td').length") > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 480])
def test_the_page_is_laid_out(show, failing_run, scheme, width):
    """On wide and narrow screens, in light and dark: parts below each other, within the screen, all legible."""
    page = show(failing_run, scheme=scheme, width=width)
    boxes = page.run(
        """
        const boxes = [...document.querySelectorAll("main > section")].map((one) => one.getBoundingClientRect());
        return boxes.map((box) => [box.left, box.top, box.right, box.bottom]);
        """
    )
    for (left, top, right, bottom), after in zip(boxes, [*boxes[1:], None], strict=True):
        assert 0 <= left < right <= width
        assert bottom - top > 80
        assert after is None or bottom <= after[1]
    assert page.run("return document.documentElement.scrollWidth") <= width
    contrasts = page.run(
        """
        const light = (one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4);
        const shade = (text) => {
          const [red, green, blue] = text.match(/[\\d.]+/g).map(light);
          return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        };
        const paper = (one) => {
          const found = getComputedStyle(one).backgroundColor;
          return found.endsWith(", 0)") ? paper(one.parentElement) : found;
        };
        const texts = document.querySelectorAll("h1, h2, p, td, th, label, summary, a, button, figcaption");
        const some = [...texts].filter((one, at) => at < 200 || at % 20 === 0);  // rows of a table are alike
        return some.filter((one) => one.textContent.trim() && one.offsetParent).map((one) => {
          const [low, high] = [shade(getComputedStyle(one).color), shade(paper(one))].sort((a, b) => a - b);
          return (high + 0.05) / (low + 0.05);
        });
        """
    )
    assert min(contrasts) >= 4.5
    pixels = screenshot(page)
    assert (pixels[8, 8].mean() < 0.2) == (scheme == "dark")
    assert (pixels[8, 8].mean() > 0.9) == (scheme == "light")
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 100


def screenshot(page):
    """Return the upper left part of the page, shape (rows, columns, red green blue), from 0 to 1."""
    clip = {"x": 0, "y": 0, "width": 500, "height": 700, "scale": 1}
    shot = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return imread(io.BytesIO(base64.b64decode(shot["data"])), format="png")[:, :, :3]


def test_it_prints(page):
    """In print, controls are left out, and tables and drawings remain."""
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = page.run("return ['form.bar', 'nav'].map((one) => getComputedStyle(document.querySelector(one)).display)")
    printed = base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])

    assert hidden == ["none", "none"]
    assert printed.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 30


SLIDE = """
const one = document.getElementById("network-time");
one.value = arguments[0];
one.dispatchEvent(new Event("input"));
"""
NODES = """
select count(distinct node), count(distinct job) from (
  select distinct job_id as job, unnest(range(low // 2, high // 2 + 1)) as node from (
    select job_id, split_part(part, '-', 1)::int as low, split_part('0-' || part, '-', -1)::int as high
    from (select job_id, unnest(string_split(allocated_resources, ' ')) as part from read_csv('{folder}/out_jobs.csv')
          where starting_time <= {time} and {time} < finish_time)))
"""


@pytest.mark.parametrize("moment", [100, 500, 730])
def test_the_network_at_a_moment(show, torus_run, moment):
    """A slider chooses the moment; the map shows which nodes have jobs, and says it in words, too."""
    page = show(torus_run)
    page.run(SLIDE, moment)
    settle(page)
    found = page.run("return document.getElementById('network-0').getAttribute('aria-label')")
    busy, jobs = re.search(r": (\d+) of 48 nodes have (\d+) jobs, 0 are out", found).groups()
    begin, end = duckdb.sql(
        f"select min(submission_time), max(finish_time) from read_csv('{torus_run}/out_jobs.csv')"  # noqa: S608
    ).fetchall()[0]
    time = begin + moment / 1000 * (end - begin)

    assert (int(busy), int(jobs)) == duckdb.sql(NODES.format(folder=torus_run, time=time)).fetchall()[0]
    assert page.run(COLOURS)[6] > 2  # five curves, the machine, the network


def test_network_view_names_positions(show, torus_run):
    """Hovering over a node shows its number, coordinates and job; colours match the machine's."""
    page = show(torus_run)
    before = page.run("return document.getElementById('network-0').toDataURL()")
    choose(page, "gantt-colour", "size")
    assert page.run("return document.getElementById('network-0').toDataURL()") != before
    point = """
    const canvas = document.getElementById("network-0"), box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 2, clientY: box.top + 16}));
    """
    page.run(point)
    assert re.match(r"node 0 at \(0, 0, 0\): ", page.text("#network .tip"))


def test_a_run_that_was_cut_short(show, failing_run, tmp_path):
    """What there is, is drawn; that the run did not come to its end stands at the top."""
    shutil.copytree(failing_run, tmp_path / "cut")
    (tmp_path / "cut" / "out_summary.json").unlink()
    for name in ("jobs", "decisions", "machine_states", "attempts", "outages"):
        path = tmp_path / "cut" / f"out_{name}.csv"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    page = show(tmp_path / "cut")

    assert "The run was cut short" in page.text("header .note")
    assert "running at the end" in page.run(
        """
        const one = document.getElementById("gantt-colour");
        one.value = "state";
        one.dispatchEvent(new Event("change"));
        return document.querySelector("#machine .legend").textContent;
        """
    )
    assert min(page.run(COLOURS)) > 1
    assert [one for one in page.driver.get_log("browser") if one["level"] != "INFO"] == []


def test_a_run_of_no_jobs(show, tmp_path):
    """Nothing to draw is no error."""
    run_in_process(
        generate(jobs=3, units=4, seed=1).select(np.zeros(3, dtype=bool)),
        "easy",
        options=RunOptions(out=tmp_path / "empty"),
    )
    page = show(tmp_path / "empty")

    assert page.run("return document.querySelectorAll('[role=alert]').length") == 0
    assert "0 of 0 jobs" in page.text("form.bar")
