"""What the site makes of the pages, which stay plain Markdown that a forge shows, too.

Files of the project outside docs/ that a page links become pages of the site, so that no link leaves it; a link to
what is not there ends a build. Mermaid's diagrams are put in as docs/theme/make_diagrams.py has drawn them: the theme
would load the program that draws them from the network.
"""

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DIAGRAMS = Path(__file__).resolve().with_name("diagrams")
#: the folder of the site that holds the project's other files
OUTSIDE = "repository"
LANGUAGES = {".c": "c", ".js": "javascript", ".json": "json", ".py": "python", ".rs": "rust", ".toml": "toml"}
_FENCED = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1$", flags=re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")


def slug(heading: str, separator: str) -> str:
    """Return a heading's anchor, as a forge makes it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"<[^>]*>", "", heading).strip().lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> None:
    """Let headings have the anchors that they have on a forge."""
    config.mdx_configs["toc"]["slugify"] = slug


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the files outside docs/ that pages link, and those that such pages link."""
    known: set[PurePosixPath] = set()
    todo = [PurePosixPath("CONTRIBUTING.md"), PurePosixPath("CHANGELOG.md")]
    for page in files.documentation_pages():
        todo += linked(PurePosixPath("docs") / page.src_uri, page.content_string)
    while todo:
        path = todo.pop()
        if path in known or path.parts[0] == "docs":
            continue
        known.add(path)
        text = shown(path)
        if path.suffix == ".md":
            todo += linked(path, text)
        file = File.generated(config, place(path), content=text)
        file.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(file)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files outside docs/ to the pages that show them, and Mermaid's blocks to the drawn diagrams."""
    uri = PurePosixPath(page.file.src_uri)
    drawn = 0

    def fence(found: re.Match[str]) -> str:
        nonlocal drawn
        words = found[2].split()
        if words[:1] == ["mermaid"]:
            drawn += 1
            return diagram(f"{uri.stem}-{drawn}", found[3])
        return f"{found[1]}{words[0] if words else ''}\n{found[3]}{found[1]}"

    if uri.parts[0] != OUTSIDE:
        return changed(markdown, PurePosixPath("docs") / uri, fence)
    origin = uri.relative_to(OUTSIDE)
    # a file that is no page of its own has no links
    return changed(markdown, origin, fence) if (ROOT / origin).is_file() else markdown


def changed(text: str, origin: PurePosixPath, fence: Callable[[re.Match[str]], str]) -> str:
    """Return a page's text with other blocks and with links that lead to pages of the site."""
    here = place(origin)

    def link(found: re.Match[str]) -> str:
        target, mark, heading = found[0].partition("#")
        if not target or "://" in found[0]:
            return found[0]
        return posixpath.relpath(place(resolved(origin, target)), posixpath.dirname(here) or ".") + mark + heading

    parts, end = [], 0
    for block in _FENCED.finditer(text):
        parts += [_LINK.sub(link, text[end : block.start()]), fence(block)]
        end = block.end()
    return "".join([*parts, _LINK.sub(link, text[end:])])


def linked(origin: PurePosixPath, text: str) -> Iterator[PurePosixPath]:
    """Yield the files of the project that a page links, by their paths from its top."""
    for found in _LINK.finditer(_FENCED.sub("", text)):
        target = found[0].partition("#")[0]
        if target and "://" not in target:
            yield resolved(origin, target)


def resolved(origin: PurePosixPath, target: str) -> PurePosixPath:
    """Return what a link leads to; a file that is not there, or not the project's, ends the build."""
    path = PurePosixPath(posixpath.normpath(origin.parent / target))
    if path.parts[0] == ".." or not (ROOT / path).exists():
        raise PluginError(f"{origin}: there is no file '{path}'. Correct the link '{target}'.")
    return path


def place(path: PurePosixPath) -> str:
    """Return where the site has a file of the project, among its sources."""
    if path.parts[0] == "docs":
        return str(path.relative_to("docs"))
    return f"{OUTSIDE}/{path}" if path.suffix == ".md" else f"{OUTSIDE}/{path}.md"


def shown(path: PurePosixPath) -> str:
    """Return the page that shows a file, or lists a folder: what is no Markdown is not searched."""
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
    """Yield a page's fenced blocks: the first word after the fence, and the text."""
    for found in _FENCED.finditer(text):
        yield (found[2].split() or [""])[0], found[3]


def digest(source: str) -> str:
    """Return what tells whether a diagram is that of its source."""
    return hashlib.sha256(source.encode()).hexdigest()


def diagram(name: str, source: str) -> str:
    """Return the drawn diagram; one of another source ends the build."""
    path = DIAGRAMS / f"{name}.svg"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    head, _, svg = text.partition("\n")
    if head != f"<!-- {digest(source)} -->":
        raise PluginError(
            f"{path.relative_to(ROOT)} is not the diagram that its page has now. "
            "Draw it anew: python docs/theme/make_diagrams.py"
        )
    return f'<div class="diagram">{svg.strip()}</div>\n'
