"""Build the documentation as a site: python docs/make_site.py [--out FOLDER]

Pages stay plain Markdown that code hosting sites also show. This program writes the sources of the site into a
temporary folder and builds them with Zensical. The build fails if a link, an anchor or a page of the navigation does
not exist. The sources are those of docs/, with two changes:

- Files outside docs/ to which a page links become pages of the site, so that no link leaves the site.
- Mermaid diagrams are replaced by the drawings of docs/make_diagrams.py, because the theme would load Mermaid from
  the network.
"""

import argparse
import hashlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "zensical.toml"
DIAGRAMS = ROOT / "docs" / "theme" / "diagrams"
#: folder of the site for files of the project outside docs/
OUTSIDE = "repository"
LANGUAGES = {".c": "c", ".js": "javascript", ".json": "json", ".py": "python", ".rs": "rust", ".toml": "toml"}
#: files in docs/ that the site needs in addition to the pages
ASSETS = ("*.png", "*.svg", "site.css", "iframe-worker*")
_FENCED = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1$", flags=re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")


def pages() -> list[PurePosixPath]:
    """Return the paths of all pages in docs/, relative to the project's folder."""
    found = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md"))]
    return [PurePosixPath(path.relative_to(ROOT).as_posix()) for path in found]


def write_sources(folder: Path) -> None:
    """Write the site's sources.

    These are docs/, and the files outside docs/ to which pages link. Links from those files are followed too.
    """
    known: set[PurePosixPath] = set()
    todo = [*pages(), PurePosixPath("CONTRIBUTING.md"), PurePosixPath("CHANGELOG.md")]
    while todo:
        path = todo.pop()
        if path in known or is_picture(path):
            continue
        known.add(path)
        text = shown(path)
        if path.suffix == ".md":
            todo += linked(path, text)
            text = changed(path, text)
        target = folder / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for pattern in ASSETS:
        for asset in (ROOT / "docs").rglob(pattern):
            if not asset.is_relative_to(DIAGRAMS):
                target = folder / asset.relative_to(ROOT / "docs")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(asset, target)


def check_navigation() -> None:
    """Stop the build if a page of docs/ is missing in the navigation."""
    named = set(leaves(tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]["nav"]))
    missing = [place(path) for path in pages() if place(path) not in named]
    if missing:
        raise SystemExit(f"{CONFIG.name}: the navigation does not name {', '.join(missing)}. Add it to 'nav'.")


def leaves(nav: Any) -> Iterator[str]:
    """Yield the paths of the pages in a navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from leaves(part)


def changed(origin: PurePosixPath, text: str) -> str:
    """Return a page's text as the site shows it.

    Diagrams are drawn, and links lead to pages of the site.
    """
    here = place(origin)
    drawn = 0

    def link(found: re.Match[str]) -> str:
        target, mark, heading = found[0].partition("#")
        if not target or "://" in found[0]:
            return found[0]
        return posixpath.relpath(place(resolved(origin, target)), posixpath.dirname(here) or ".") + mark + heading

    def fence(found: re.Match[str]) -> str:
        nonlocal drawn
        words = found[2].split()
        if words[:1] == ["mermaid"]:
            drawn += 1
            return diagram(f"{origin.stem}-{drawn}", found[3])
        return f"{found[1]}{words[0] if words else ''}\n{found[3]}{found[1]}"

    return outside_fences(text, lambda part: _LINK.sub(link, part), fence)


def outside_fences(text: str, change: Callable[[str], str], fence: Callable[[re.Match[str]], str]) -> str:
    """Change a text outside and inside its fenced blocks.

    ``fence`` is applied to each fenced block, and ``change`` to the text between blocks.
    """
    parts, end = [], 0
    for block in _FENCED.finditer(text):
        parts += [change(text[end : block.start()]), fence(block)]
        end = block.end()
    return "".join([*parts, change(text[end:])])


def linked(origin: PurePosixPath, text: str) -> Iterator[PurePosixPath]:
    """Yield the project's files to which a page links.

    Their paths are relative to the project's folder.
    """
    for found in _LINK.finditer(_FENCED.sub("", text)):
        target = found[0].partition("#")[0]
        if target and "://" not in target:
            yield resolved(origin, target)


def resolved(origin: PurePosixPath, target: str) -> PurePosixPath:
    """Return the file to which a link leads; stop the build if it does not exist."""
    path = PurePosixPath(posixpath.normpath(origin.parent / target))
    if path.parts[0] == ".." or not (ROOT / path).exists():
        raise SystemExit(f"{origin}: there is no file '{path}'. Correct the link '{target}'.")
    return path


def place(path: PurePosixPath) -> str:
    """Return the path that a file of the project has in the site's sources."""
    if is_picture(path) or (path.parts[0] == "docs" and path.suffix == ".md"):
        return str(path.relative_to("docs"))
    return f"{OUTSIDE}/{path}" if path.suffix == ".md" else f"{OUTSIDE}/{path}.md"


def is_picture(path: PurePosixPath) -> bool:
    """Return whether a file is a picture of docs/, which is copied without changes."""
    return path.parts[0] == "docs" and path.suffix in {".png", ".svg"}


def shown(path: PurePosixPath) -> str:
    """Return a page that shows a file or lists a folder.

    The site's search finds only Markdown files.
    """
    real = ROOT / path
    if path.suffix == ".md":
        return real.read_text(encoding="utf-8")
    head = f"---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n# {path}\n\n"
    if real.is_dir():
        names = sorted(
            f"{one.name}/" if one.is_dir() else one.name for one in real.iterdir() if one.name[0] not in "._"
        )
        return head + "".join(f"- `{name}`\n" for name in names)
    text = real.read_text(encoding="utf-8")
    return f"{head}~~~~~~ {LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n~~~~~~\n"


def fences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each fenced block of a page."""
    for found in _FENCED.finditer(text):
        yield (found[2].split() or [""])[0], found[3]


def digest(source: str) -> str:
    """Return a digest of a diagram's source, with which the drawing is marked."""
    return hashlib.sha256(source.encode()).hexdigest()


def diagram(name: str, source: str) -> str:
    """Return a drawn diagram.

    Stop the build if its source has changed since it was drawn.
    """
    path = DIAGRAMS / f"{name}.svg"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    head, _, svg = text.partition("\n")
    if head != f"<!-- {digest(source)} -->":
        raise SystemExit(
            f"{path.relative_to(ROOT)} is not the diagram that its page has now. "
            "Draw it again: python docs/make_diagrams.py"
        )
    return f'<div class="diagram">{svg.strip()}</div>\n'


def main() -> None:
    """Build the site from docs/."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="folder of the site (default: site)")
    out = parser.parse_args().out.resolve()
    check_navigation()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_sources(folder / "pages")
        shutil.copyfile(CONFIG, folder / CONFIG.name)
        words = [sys.executable, "-m", "zensical", "build", "--strict"]
        built = subprocess.run(words, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)
        if built.returncode:
            # Zensical prints colours even without a terminal, and its own traceback
            printed = re.sub(r"\x1b\[[0-9;]*m", "", built.stdout + built.stderr)
            raise SystemExit(printed.partition("Traceback")[0])
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(folder / "site", out)


if __name__ == "__main__":
    main()
