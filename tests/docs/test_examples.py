"""Every code block of README and docs is run or checked here; CONTRIBUTING.md says how blocks are marked."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import convert

import pipistrelle as pp
from pipistrelle.models.likeness.model import parse_model
from pipistrelle.models.workloads.classes import parse_classes
from pipistrelle.platforms.read import parse_platform
from pipistrelle.protocol import codec
from pipistrelle.protocol.decisions import Malformed
from pipistrelle.protocol.messages import Notice, Refused, SavedData
from pipistrelle.runs.description.spec_file import convert_spec, read_raw
from pipistrelle.schedulers.catalogue.foreign import ForeignScheduler
from pipistrelle.schedulers.catalogue.presets import parse_preset
from pipistrelle.studies.trials.study import Study
from pipistrelle.traces.batsim.workload import parse_batsim
from pipistrelle.traces.generator import generate
from pipistrelle.traces.load import save

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "docs" / "index.md", *(ROOT / "docs").glob("*/*.md")])
KINDS = {
    "console",  # commands and what they print
    "python",  # executed, or the content of a file
    "json",  # frames, or a workload
    "toml",  # a platform, a run, a study, classes of jobs, or a model of a log
    "text",  # not code; after "<!-- output -->" the output of the Python block before it
    "yaml",  # a workflow: test_ci.py
    "sh",  # set-up commands, which .ci/run runs: test_ci.py
    "mermaid",  # drawn from the code: test_design_page.py
}
REAL_LOG = re.compile(r"(?:KTH-SP2|HPC2N|CEA-Curie|ALCF-Theta|LANL-Grizzly)[\w.-]*\.swf(?:\.gz)?")
#: progress lines that a slow machine may print
_STILL_RUNS = re.compile(r"^(?:.* \d+ s so far|[\d,]+/[\d,]+ trials.*)\n", re.MULTILINE)
_FILE = re.compile(r"<!-- file: (\S+) -->")


class Block(NamedTuple):
    """A fenced block: where it begins, the words after the fence, the comment before it, its text."""

    page: Path
    line: int
    words: list[str]
    mark: str
    text: str

    @property
    def kind(self) -> str:
        """The block's kind."""
        return self.words[0] if self.words else ""

    @property
    def where(self) -> str:
        """Page and line, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield a page's fenced blocks in order."""
    mark = ""
    words: list[str] | None = None
    text: list[str] = []
    begun = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if words is not None:
            if line == "```":
                yield Block(page, begun, words, mark, "".join(f"{row}\n" for row in text))
                words, text, mark = None, [], ""
            else:
                text.append(line)
        elif line.lstrip().startswith("```"):
            assert line.startswith("```"), f"{page.name}:{number}: a fence is not indented"
            words, begun = line.removeprefix("```").split(), number
        elif line.strip():
            mark = line if line.startswith("<!--") else ""
    assert words is None, f"{page.name}:{begun}: the block does not end"


def commands_of(block: Block) -> list[tuple[str, list[str]]]:
    """Return a console block's commands, each with the expected lines of output."""
    commands: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append((line.removeprefix("$ "), []))
        elif commands and commands[-1][0].endswith("\\"):
            commands[-1] = (f"{commands[-1][0]}\n{line}", [])
        else:
            assert commands, f"{block.where}: a console block begins with a command"
            commands[-1][1].append(line)
    return commands


def matches(expected: list[str], printed: str) -> bool:
    """Return whether a text is as expected: ``...`` stands for any text, alone on its line for any lines.

    If nothing is expected, any text is accepted.
    """
    if not expected:
        return True
    lines = [r"(?:.*\n)*?" if line == "..." else wild(line.rstrip()) + r" *\n" for line in expected]
    return re.fullmatch("".join(lines), printed) is not None


def wild(line: str) -> str:
    """Return the pattern of one line."""
    return ".*".join(re.escape(part) for part in line.split("..."))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return a folder that looks like the top of a clone to the examples, with a log of the reader's."""
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    shutil.copy(ROOT / "docs" / "examples" / "predicting.py", tmp_path)  # the notebook's page tells to save it there
    save(generate(jobs=20, units=4, seed=1, load=0.5), tmp_path / "my.swf.gz")
    return tmp_path


#: environment variables of a reader's terminal, set and unset
TERMINAL: dict[str, str | None] = {
    "COLUMNS": "80", "PYTHONUTF8": "1", "NO_COLOR": "1", "FORCE_COLOR": None, "PYTHONWARNINGS": None
}  # fmt: skip
Start = Callable[[str, Path], subprocess.Popen[str]]


@pytest.fixture(scope="session")
def start(make_forks: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Return what starts a shell command in a folder, with the environment's ``python`` and ``pipistrelle`` first."""
    commands = tmp_path_factory.mktemp("commands")
    if (forks := make_forks(**TERMINAL)) is not None:
        forks.write_commands(commands)
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    changed = {**os.environ, "PATH": path, **TERMINAL}
    environment = {name: value for name, value in changed.items() if value is not None}
    return lambda command, folder: start_in(command, folder, environment)


def start_in(command: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start a shell command in a folder."""
    return subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def end(process: subprocess.Popen[str]) -> str:
    """End a command and all its processes, if still running, and return what it printed since the last call."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def check(process: subprocess.Popen[str], expected: list[str], block: Block) -> None:
    """Wait for a command and compare what it printed."""
    try:
        printed, _ = process.communicate()
    except BaseException:
        end(process)
        raise
    assert process.returncode == 0, f"{block.where}: exit code {process.returncode}\n{printed}"
    printed = _STILL_RUNS.sub("", printed)
    assert matches(expected, printed), f"{block.where} printed\n{printed}"


def run_console(blocks: list[Block], folder: Path, start: Start) -> None:
    """Run the commands of console blocks; adjacent blocks called terminal-1 and terminal-2 run at the same time."""
    waiting: list[tuple[subprocess.Popen[str], list[str], Block]] = []
    try:
        for block in blocks:
            terminal = next((word for word in block.words if word.startswith("terminal-")), None)
            for command, expected in commands_of(block):
                process = start(command, folder)
                if terminal == "terminal-1":
                    waiting.append((process, expected, block))
                else:
                    check(process, expected, block)
            if terminal != "terminal-1":
                for process, expected, other in waiting:
                    check(process, expected, other)
                waiting = []
        assert not waiting, "terminal-1 is followed by terminal-2"
    finally:
        for process, _, _ in waiting:
            end(process)


def run_python(block: Block, namespace: dict[str, Any]) -> str:
    """Execute a Python block and return what it prints."""
    code = compile("\n" * block.line + block.text, block.where, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)  # noqa: S102 - running the documentation is the purpose
    return printed.getvalue()


def check_json(value: Any, block: Block) -> None:
    """Decode a JSON value by its kind: a frame of the protocol or a workload."""
    frame = json.dumps(value).encode()
    if "reply_to" in value:
        reply = codec.decode_reply(frame)
        assert not [decision for decision in reply.events if isinstance(decision, Malformed)], block.where
    elif "seq" in value:
        assert isinstance(codec.decode_notice(frame), Notice), block.where
    elif value.get("type") == "HELLO":
        codec.decode_hello(frame)
    elif value.get("type") in {"WELCOME", "REFUSED"}:
        codec.decode_greeting(frame)
    elif value.get("type") in {"SAVE", "RESTORE"}:
        assert not isinstance(codec.decode_notice(frame), Notice | Refused), block.where
    elif value.get("type") == "SAVED":
        assert isinstance(codec.decode_saved(frame), SavedData), block.where
    elif "jobs" in value:
        parse_batsim(frame, "workload.json")
    else:
        pytest.fail(f"{block.where}: neither a frame nor a workload")


#: pages whose examples take more than five seconds in total
LENGTHY = {
    "docs/explanation/guarantees.md",
    "docs/how-to/forecast.md",
    "docs/how-to/pictures.md",
    "docs/how-to/report.md",
    "docs/how-to/sessions.md",
    "docs/how-to/snapshots.md",
    "docs/how-to/studies.md",
    "docs/how-to/study-results.md",
    "docs/reference/cli.md",
    "docs/reference/dispersion.md",
    "docs/reference/maui.md",
    "docs/reference/pbs.md",
    "docs/reference/placing.md",
    "docs/reference/scheduling.md",
    "docs/reference/workload-models.md",
    "docs/tutorials/compare-schedulers.md",
    "docs/tutorials/your-slurm.md",
}
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


@every_page
def test_every_block_has_a_checked_kind(page: Path) -> None:
    """No page has a block that nothing runs or checks."""
    assert not [block.where for block in blocks_of(page) if block.kind not in KINDS]


@every_page
def test_files_are_shown_as_they_are(page: Path) -> None:
    """A block marked as a file is that file, byte for byte."""
    for block in blocks_of(page):
        if shown := _FILE.fullmatch(block.mark):
            assert block.text == (ROOT / shown[1]).read_text(encoding="utf-8"), block.where


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[pytest.mark.slow] if name in LENGTHY else [])
        for page, name in zip(PAGES, NAMES, strict=True)
    ],
)
def test_examples_run_as_shown(page: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    """A page's commands and Python, in order in one folder, succeed and print what the page says."""
    monkeypatch.chdir(scratch)
    namespace: dict[str, Any] = {"__name__": "example"}
    printed = ""
    terminals: list[Block] = []
    for block in blocks_of(page):
        if block.kind == "console" and not REAL_LOG.search(block.text):
            terminals.append(block)
            if "terminal-1" not in block.words:
                run_console(terminals, scratch, start)
                terminals = []
        elif block.kind == "python" and not _FILE.fullmatch(block.mark):
            printed = run_python(block, namespace)
        elif block.kind == "text" and block.mark == "<!-- output -->":
            assert matches(block.text.splitlines(), printed), f"{block.where}: printed\n{printed}"
    assert not terminals, f"{terminals[0].where}: terminal-1 is followed by terminal-2"


@every_page
def test_data_on_pages_is_valid(page: Path, json_values: Callable[[str], list[Any]]) -> None:
    """Frames, workloads, platforms and runs shown on a page can be read by the code that reads such files."""
    for block in blocks_of(page):
        if block.kind == "json":
            for value in json_values(block.text):
                check_json(value, block)
        elif block.kind == "toml":
            if "[[pools]]" in block.text:
                parse_platform(block.text, block.where)
            elif "[[gaps]]" in block.text:
                parse_model(block.text, block.where)
            elif "[axes" in block.text:
                points = Study(**read_raw(block.text, block.where)).points
                machines = {point.spec.platform for point in points} - {None, *pp.bundled("platform")}
                assert points, block.where
                assert all(Path(name).suffix for name in machines), (block.where, machines)
            elif "[run]" in block.text:
                convert_spec(read_raw(block.text, block.where)["run"], block.where)
            elif "machine_size" in block.text:
                parse_classes(block.text, block.where)
            elif "[preemption]" in block.text:
                parse_preset(block.text, block.where)
            elif "argv = " in block.text:
                assert convert(read_raw(block.text, block.where), ForeignScheduler).argv, block.where
            else:
                convert_spec(read_raw(block.text, block.where), block.where)


WITH_LOGS = [block for page in PAGES for block in blocks_of(page) if block.kind == "console"]
WITH_LOGS = [block for block in WITH_LOGS if REAL_LOG.search(block.text)]


@pytest.mark.slow
@pytest.mark.parametrize("block", WITH_LOGS, ids=[block.where for block in WITH_LOGS])
def test_examples_on_real_logs_run_as_shown(block: Block, scratch: Path, traces_dir: Path, start: Start) -> None:
    """Commands on logs that we may not redistribute print what the page says; skipped if the logs are absent."""
    for name in set(REAL_LOG.findall(block.text)):
        (scratch / name).symlink_to(traces_dir / name)
    run_console([block], scratch, start)


@every_page
def test_links_name_existing_files_and_headings(page: Path) -> None:
    """Every relative link of a page names a file of the project, and its heading if it names one."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, heading = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), f"{page.name}: {target}"
        if heading:
            titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, target
