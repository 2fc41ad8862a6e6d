"""Draw the Mermaid diagrams of the docs for the site.

Run it with: python docs/make_diagrams.py [mermaid.min.js]. It needs Debian's chromium and chromium-driver, selenium,
and npm to fetch Mermaid if no file is given. The first line of each drawn file is the digest of its source.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from make_site import DIAGRAMS, ROOT, digest, fences
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

MERMAID = "mermaid@11.17.2"
SETTINGS = {
    "startOnLoad": False,
    "theme": "base",
    "deterministicIds": True,
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False, "wrappingWidth": 400},
    "state": {"htmlLabels": False},
    "themeVariables": {"fontFamily": "DejaVu Sans Mono, monospace", "fontSize": "14px"},
}
DRAW = """
const [name, source, settings, done] = arguments;
mermaid.initialize(settings);
mermaid.render(name, source).then(({svg}) => done(svg), (error) => done(`failed: ${error}`));
"""


def fetch(folder: Path) -> Path:
    """Fetch Mermaid's package with npm, and return the path of its script."""
    subprocess.run(["npm", "pack", "--silent", MERMAID], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        package.extract("package/dist/mermaid.min.js", folder, filter="data")
    return folder / "package" / "dist" / "mermaid.min.js"


def main() -> None:
    """Draw all diagrams."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    DIAGRAMS.mkdir(exist_ok=True)
    for old in DIAGRAMS.glob("*.svg"):
        old.unlink()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program = Path(sys.argv[1]) if len(sys.argv) > 1 else fetch(folder)
        page = folder / "page.html"
        page.write_text(f'<!doctype html><meta charset="utf-8"><script src="{program.resolve().as_uri()}"></script>')
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        try:
            driver.get(page.as_uri())
            for path in [*sorted((ROOT / "docs").glob("*/*.md")), ROOT / "protocol" / "SPEC.md"]:
                sources = [text for kind, text in fences(path.read_text(encoding="utf-8")) if kind == "mermaid"]
                for number, source in enumerate(sources, 1):
                    name = f"{path.stem}-{number}"
                    svg = driver.execute_async_script(DRAW, name, source, SETTINGS)
                    if not svg.startswith("<svg"):
                        raise SystemExit(f"{path.name}, diagram {number}: {svg}")
                    (DIAGRAMS / f"{name}.svg").write_text(f"<!-- {digest(source)} -->\n{svg}\n", encoding="utf-8")
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
