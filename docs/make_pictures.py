"""Make the pictures of docs/how-to/pictures.md: python docs/make_pictures.py

The program runs that page's commands in order, in one folder. The comment before each picture names the output file, or
its part, to draw. It needs selenium and Chromium with its driver (.ci/browser installs both).
"""

import re
import shutil
import subprocess
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "how-to" / "pictures.md"
#: matches a block of commands, or a comment about a picture with the picture
_PART = re.compile(
    r"^```console\n(?P<console>.*?)^```$|"
    r"^<!-- picture: (?P<file>\S+)(?: (?P<part>\S+))? -->\n!\[[^\]]+\]\(\.\./(?P<path>pictures/\S+)\)$",
    flags=re.MULTILINE | re.DOTALL,
)
_SHOW = """
const [part, done] = arguments;
const draw = () => {
  const seen = document.querySelector(part);
  if (!seen) return setTimeout(draw, 50);
  seen.scrollIntoView();
  setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), 1500);
};
draw();
"""


class Picture(NamedTuple):
    """A picture, the commands that make its output file, and the part to draw.

    ``part`` is a CSS selector; empty: the whole file. Pictures after one block of commands share the commands.
    """

    commands: tuple[str, ...]
    file: str
    part: str
    path: Path


def pictures() -> list[Picture]:
    """Return the pictures of docs/how-to/pictures.md in the page's order."""
    found = []
    commands: tuple[str, ...] = ()
    for one in _PART.finditer(PAGE.read_text(encoding="utf-8")):
        if one["file"] is None:
            commands = tuple(line[2:] for line in one["console"].splitlines() if line.startswith("$ "))
        else:
            found.append(Picture(commands, one["file"], one["part"] or "", DOCS / one["path"]))
    return found


def make(driver: Any, into: Path) -> None:
    """Run the commands of docs/how-to/pictures.md, and write its pictures to a folder."""
    into.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "docs").symlink_to(DOCS, target_is_directory=True)
        for commands, drawn in groupby(pictures(), lambda picture: picture.commands):
            for command in commands:
                subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            for picture in drawn:
                draw(driver, folder, picture, into)


def draw(driver: Any, folder: Path, picture: Picture, into: Path) -> None:
    """Write a picture of an output file in ``folder`` into another folder."""
    if picture.part:
        photograph(driver, folder / picture.file, picture.part, into / picture.path.name)
    else:
        shutil.copyfile(folder / picture.file, into / picture.path.name)


def photograph(driver: Any, page: Path, part: str, path: Path) -> None:
    """Take a screenshot of a part of an HTML page, once the page has drawn this part."""
    driver.get(page.as_uri())
    driver.execute_async_script(_SHOW, part)
    if not driver.find_element("css selector", part).screenshot(str(path)):
        raise SystemExit(f"{path} cannot be written")


def main() -> None:
    """Make all pictures."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-sandbox"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,1000")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        make(driver, DOCS / "pictures")
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
