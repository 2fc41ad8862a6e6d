"""Measure the time to generate, open and zoom the report page of some runs.

Prints:

- the size of the page, and the processor time to generate it, without imports; also relative to the processor time of
  the runs themselves, including their outputs;
- the time until a headless Chromium has drawn the first screens and the whole page, the processor time of the
  browser's processes, and the times that the browser itself measures;
- the median time of one zoom step until it is drawn.

    python benchmarks/page.py RUN [RUN...] [--repeat 3] [--made-only]

It needs Debian's chromium and chromium-driver, and the extra `study`.
"""

import argparse
import gc
import os
import statistics
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from started import started

from pipistrelle.models.samples.estimates import scipy_part
from pipistrelle.reports.page.page import page_of
from pipistrelle.runs.description.spec_file import convert_spec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.files import read_command

READY = """
const done = arguments[0], {dataset} = document.documentElement;
let open = null;
const look = () => {
  if (open === null && dataset.open) open = performance.now();
  return dataset.ready ? done([open, performance.now()]) : setTimeout(look);
};
look();
"""
ZOOM = """
const done = arguments[0], canvas = document.getElementById("gantt-0"), times = [];
const step = (left) => {
  if (!left) return done(times);
  const begun = performance.now();
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: left % 2 ? "+" : "ArrowRight"}));
  requestAnimationFrame(() => setTimeout(() => {
    times.push(performance.now() - begun);
    step(left - 1);
  }));
};
step(20);
"""


def processor_time(folder: str) -> float:
    """Return the processor time (s) of the browser's processes.

    The processes are found by their profile folder.
    """
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if folder.encode() in (entry / "cmdline").read_bytes():
                total += sum(map(int, (entry / "stat").read_text().rpartition(")")[2].split()[11:13]))
        except OSError:
            continue
    return total / os.sysconf("SC_CLK_TCK")


def run_again(folder: Path) -> float:
    """Repeat a run in this process and return its processor time (s).

    The time includes the run's outputs. Return 0 if the run cannot be repeated: it has no command file, used a
    scheduler program, or was resumed.
    """
    raw = read_command(folder)
    if raw is None:
        return 0.0
    spec = convert_spec(raw, str(folder))
    if spec.program is not None or spec.resumed is not None:
        return 0.0
    with tempfile.TemporaryDirectory() as out:
        begun = time.process_time()
        run(spec, RunOptions(out=Path(out) / "out"))
        return time.process_time() - begun


def counted(driver: webdriver.Chrome) -> str:
    """Return as text what the browser itself measured.

    These are the times of scripts and of all tasks.
    """
    told = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    found = {one["name"]: one["value"] for one in told}
    return f"scripts {found['ScriptDuration']:.2f} s, tasks {found['TaskDuration']:.2f} s"


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--made-only", action="store_true", help="only generate the page, without a browser")
    wanted = parser.parse_args()
    scipy_part("special")  # imported now, because imports are not counted; the page of several runs needs it
    text = ""
    for _ in range(wanted.repeat):  # in turn, so that other load on the machine affects both
        ran = sum(map(run_again, wanted.runs))
        gc.disable()
        begun = time.process_time()
        text = page_of(wanted.runs)
        made = time.process_time() - begun
        gc.enable()
        share = f"; the runs in {ran:.2f} s: {made / ran:.3f} of that" if ran else ""
        print(f"{len(text) / 1e6:.2f} MB, made in {made:.2f} s of processor time{share}")
    if wanted.made_only:
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(text, encoding="utf-8")
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in (
            "--headless=new",
            "--disable-gpu",
            "--window-size=1280,1000",
            f"--user-data-dir={folder}/profile",
        ):
            options.add_argument(argument)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        try:
            driver.set_script_timeout(120)
            driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            for _ in range(wanted.repeat):
                before = processor_time(folder)
                driver.get(page.as_uri())
                first, opened = driver.execute_async_script(READY)
                spent = processor_time(folder) - before
                told = counted(driver)
                zoom = statistics.median(driver.execute_async_script(ZOOM))
                opening = f"opens in {first / 1000:.2f} s, all is drawn in {opened / 1000:.2f} s"
                print(f"{opening}, {spent:.2f} s of processor time ({told}); a step of zoom {zoom:.0f} ms")
        finally:
            driver.quit()


if __name__ == "__main__":
    started(main)
