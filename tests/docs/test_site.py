"""The documentation site: every page is in it, links work, and it needs neither a server nor a network."""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).resolve().parent.parent.parent
THEME = ROOT / "docs" / "theme"
#: time limit of a browser in seconds; one that takes longer hangs
PATIENCE_S = 300


def build(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a copy of the project."""
    words = [sys.executable, "docs/make_site.py", "--out", str(out)]
    return subprocess.run(
        words,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"NO_COLOR": "1"},
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="session")
def _zensical() -> None:
    """Skip if the site generator is not installed, unless CI=true."""
    if importlib.util.find_spec("zensical") is None:
        reason = "Zensical is not installed: python -m pip install -e '.[docs]'"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def site(_zensical: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site."""
    out = tmp_path_factory.mktemp("site") / "site"
    built = build(ROOT, out)
    assert built.returncode == 0, built.stdout
    return out


def test_every_page_is_in_the_navigation() -> None:
    """zensical.toml names each page of docs/ once."""
    nav = str(tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    named = re.findall(r"'((?!repository/)[\w/-]+\.md)'", nav)
    pages = [ROOT / "docs" / "index.md", *(ROOT / "docs").glob("*/*.md")]
    assert sorted(named) == sorted(path.relative_to(ROOT / "docs").as_posix() for path in pages)


def test_pages_that_files_name_exist() -> None:
    """Code, comments, tests and data name pages by their current path."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not names:
        pytest.skip("this copy of the project is no checkout")
    wrong = set()
    for name in names.split("\0"):
        path = ROOT / name
        if path.is_file() and path.suffix not in {".png", ".gz", ".svg"} and name != "CHANGELOG.md":
            text = path.read_bytes().decode(errors="replace")
            for page in re.findall(r"\bdocs/[\w/-]+\.md\b", text):
                if not (ROOT / page).is_file():
                    wrong.add(f"{name}: {page}")
    assert wrong == set()


def test_every_diagram_has_its_picture() -> None:
    """Each Mermaid block has its picture, and no other picture exists; otherwise run docs/make_diagrams.py."""
    wanted = {}
    for page in [*(ROOT / "docs").glob("*/*.md"), *ROOT.glob("*.md"), ROOT / "protocol" / "SPEC.md"]:
        text = page.read_text(encoding="utf-8")
        for number, source in enumerate(re.findall(r"^```mermaid\n(.*?)^```$", text, re.MULTILINE | re.DOTALL), 1):
            wanted[f"{page.stem}-{number}.svg"] = hashlib.sha256(source.encode()).hexdigest()

    drawn = {path.name: path.read_text(encoding="utf-8") for path in (THEME / "diagrams").iterdir()}
    assert {name: text.partition("\n")[0] for name, text in drawn.items()} == {
        name: f"<!-- {source} -->" for name, source in wanted.items()
    }
    assert not [name for name, text in drawn.items() if re.search(r"<script|foreignObject|url\(['\"]?http", text)]


def test_third_party_files_have_the_listed_digests() -> None:
    """Each has the digest in its row."""
    page = (THEME / "third_party" / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w.-]+) \|.*\| ([0-9a-f]{64}) \|$", page, flags=re.MULTILINE))
    files = [path for path in (THEME / "third_party").iterdir() if path.name != "README.md"]

    assert rows == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
@pytest.mark.usefixtures("_zensical")
def test_missing_links_anchors_and_files_fail_a_strict_build(tmp_path: Path) -> None:
    """The error names page and target; also a page that the navigation lacks, and a diagram not yet drawn."""
    for name in ("docs", "protocol"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("zensical.toml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    for path in ROOT.iterdir():  # any of them may be the target of a link
        if not (tmp_path / path.name).exists():
            (tmp_path / path.name).symlink_to(path)
    page = tmp_path / "docs" / "explanation" / "kernel.md"
    text = page.read_text(encoding="utf-8")
    for wrong, told in {
        "[x](nowhere.md)": "nowhere.md",
        "[x](#nowhere)": "#nowhere",
        "[x](../reference/cli.md#nowhere)": "#nowhere",
        "[x](../../server/nowhere.py)": "server/nowhere.py",
        "```mermaid\nflowchart TD\n    A --> B\n```": "kernel-1.svg",
    }.items():
        page.write_text(f"{text}\n{wrong}\n", encoding="utf-8")
        built = build(tmp_path, tmp_path / "out")
        assert built.returncode != 0, wrong
        assert told in built.stdout, wrong
    page.write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "unnamed.md").write_text("# Unnamed\n", encoding="utf-8")
    built = build(tmp_path, tmp_path / "out")
    assert built.returncode != 0
    assert "unnamed.md" in built.stdout


@pytest.mark.slow
def test_no_page_loads_external_files(site: Path) -> None:
    """Scripts, styles, pictures and fonts of every page are files of the site."""
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # shown by a server only
            continue
        text = page.read_text(encoding="utf-8")
        for tag, target in re.findall(r"<(script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"?([^\">\s]+)", text):
            assert "//" not in target, f"{page.name}: <{tag}> of {target}"
            assert (page.parent / target.partition("#")[0].partition("?")[0]).exists(), f"{page.name}: {target}"


def requests_of(driver: Any) -> set[str]:
    """Return the requests since the last call, except files, data in pages and the browser's own."""
    told = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {event["params"]["request"]["url"] for event in told if event["method"] == "Network.requestWillBeSent"}
    return {url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:", "chrome:"))}


def wait_for(driver: Any, script: str, *words: object) -> Any:
    """Wait until a script returns something."""
    return WebDriverWait(driver, PATIENCE_S, 0.05).until(lambda it: it.execute_script(script, *words))


@pytest.mark.slow
def test_the_site_is_searched_from_the_file_system(site: Path, browser: Any) -> None:
    """The search finds a word, the first result leads to its page, nothing is requested; light and dark work."""
    requests_of(browser)
    browser.get((site / "index.html").as_uri())
    assert browser.title.endswith("Pipistrelle")
    browser.find_element("css selector", ".md-search__button").click()
    inside = "const host = [...document.querySelectorAll('div')].find((one) => one.shadowRoot)?.shadowRoot; return host"
    wait_for(browser, f"{inside}?.querySelector('input')").send_keys("fairshare")
    links = f"{inside} ? [...host.querySelectorAll('a')].map((link) => link.href) : []"
    found = wait_for(browser, links)
    files = [Path(url2pathname(urlsplit(link).path)) for link in found]

    assert {path.name for path in files} & {"pbs.html", "maui.html"}
    assert all(path.is_file() and path.is_relative_to(site) for path in files)
    browser.get(found[0])
    assert "fairshare" in browser.execute_script("return document.querySelector('article').innerText").lower()
    schemes = "return [...document.querySelectorAll('[data-md-color-media]')].map((one) => one.dataset.mdColorScheme)"
    assert {"default", "slate"} <= set(browser.execute_script(schemes))
    assert requests_of(browser) == set()


@pytest.mark.slow
def test_diagrams_are_drawn_without_a_network(site: Path, browser: Any) -> None:
    """Each one is drawn with its words, no source is left in the page, and nothing is requested."""
    requests_of(browser)
    browser.get((site / "explanation" / "design.html").as_uri())
    texts = browser.execute_script("return [...document.querySelectorAll('.diagram svg')].map((it) => it.textContent)")

    assert len(texts) == len(list((THEME / "diagrams").glob("design-*.svg")))
    assert "SUBMITTED" in texts[0]
    assert browser.execute_script("return document.querySelectorAll('.mermaid').length") == 0
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert requests_of(browser) == set()
