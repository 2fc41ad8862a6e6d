"""The scripts of the pages: modules that are bundled into one script, and type checks."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pipistrelle.reports.page.bundle import bundle
from pipistrelle.reports.page.document import read_web

ROOT = Path(__file__).resolve().parents[3]

MODULES = {
    "a/main.js": 'import {twice} from "./twice.js";\nimport {name, Box} from "../b/box.js";\n'
    "result = [twice(2), new Box(name).it];\n",
    "a/twice.js": '// A comment.\nimport {name} from "../b/box.js";\nconst local = name.length;\n\n'
    "/** Doc. @type {x} */\nexport function twice(n) {\n  return n * local;\n}\n",
    "b/box.js": 'const local = 1;\nexport const name = "box";\n/**\n * `it`\n */\nexport class Box {\n'
    "  constructor(it) {\n    this.it = it + local;\n  }\n}\n",
}


def output_of(*command: str | Path) -> str:
    """Return the output of a command."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_modules_become_one_script():
    """Each module appears once, after its imports; names do not clash between modules; comments are removed."""
    script = bundle("a/main.js", MODULES.__getitem__)

    constants = [line.split()[1] for line in script.splitlines() if line.startswith("const $")]
    assert constants == ["$b_box", "$a_twice", "$a_main"]
    assert script.startswith('"use strict";\n')
    assert "import" not in script
    assert "export" not in script
    assert "omment" not in script
    assert "Doc." not in script
    assert bundle("a/main.js", MODULES.__getitem__) == script


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_script_does_what_the_modules_do(tmp_path):
    """The names that a module imports are those that the other exports."""
    script = tmp_path / "script.js"
    script.write_text(f"var result;\n{bundle('a/main.js', MODULES.__getitem__)}console.log(JSON.stringify(result));\n")

    assert output_of("node", script) == '[6,"box1"]\n'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('import * as all from "./twice.js";', "a/main.js, line 1: unsupported import or export"),
        ('import {twice as two} from "./twice.js";', "a/main.js, line 1: unsupported import or export"),
        ('import {twice} from "library";', "a/main.js, line 1: unsupported import or export"),
        ('const later = import("./twice.js");', "a/main.js, line 1: unsupported import or export"),
        ("export default 3;", "a/main.js, line 1: unsupported import or export"),
        ("export {local};", "a/main.js, line 1: unsupported import or export"),
        ("export const one = 1, two = 2;", "a/main.js, line 1: unsupported import or export"),
        ("export let one = 1;", "a/main.js, line 1: unsupported import or export"),
        ('import {thrice} from "./twice.js";', "a/main.js, line 1: a/twice.js does not export thrice"),
        ('import {main} from "./main.js";', "a/main.js imports itself"),
        ("const text = `first", "a/main.js, line 1: a template over several lines"),
    ],
)
def test_what_the_bundler_cannot_read_is_refused(line, message):
    """The error names the module and the line."""
    with pytest.raises(ValueError, match=message):
        bundle("a/main.js", (MODULES | {"a/main.js": f"{line}\n"}).__getitem__)


@pytest.mark.parametrize("entry", ["page/web/main.js", "live/web/live.js"])
def test_the_pages_can_be_bundled(entry):
    """Every module of a page takes part, and twice gives the same bytes."""
    folder = ROOT / "reports" / Path(entry).parent
    script = bundle(entry, read_web)

    assert all(f"_{path.stem.replace('-', '_')} = " in script for path in folder.glob("*.js"))
    assert bundle(entry, read_web) == script


def test_the_types_of_the_scripts_hold():
    """The type checker, where there is TypeScript 5, finds nothing in the scripts of the pages."""
    tsc = shutil.which("tsc")
    if tsc is None or not output_of(tsc, "--version").startswith("Version 5"):
        pytest.skip("there is no tsc of TypeScript 5 (.ci/typecheck-web installs one)")

    assert output_of(tsc, "--project", ROOT / ".ci" / "tsconfig.json") == ""
