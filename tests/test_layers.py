"""The architecture as a test: which layer may import which, and what the core never uses."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: the layers that one run needs
_RUN = {"protocol", "platforms", "traces", "server", "schedulers", "models"}
#: {layer: the layers that it may import}, from the lowest; a layer may always import itself
LAYERS: dict[str, set[str]] = {
    "protocol": set(),
    "platforms": {"protocol"},
    "traces": {"protocol"},
    "server": {"protocol", "platforms", "traces"},
    "schedulers": {"protocol", "platforms"},
    "models": {"protocol", "platforms", "traces"},
    "runs": _RUN,
    "kernel": _RUN | {"runs"},
    "reports": _RUN | {"runs"},
    "studies": _RUN | {"runs", "kernel", "reports"},
    "papers": _RUN | {"runs", "kernel", "reports", "studies"},
    "api": _RUN | {"runs", "kernel", "reports", "studies"},
    "cli": _RUN | {"runs", "kernel", "reports", "studies", "papers", "api"},
}

#: {layer: its rooms from the lowest}: a room imports from itself and from those before it. A nested room is named by
#: its path within the layer ("maui/limits"), a loose file of the layer by its stem.
ROOMS_IN_ORDER: dict[str, list[str]] = {
    "protocol": [
        *("base", "units", "fields", "resources", "events", "decisions", "messages", "frames", "codec", "session"),
        *("zmtp", "sockets", "schema", "batsim"),
    ],
    "platforms": [
        *(
            "errors",
            "naming",
            "classes",
            "resources",
            "description",
            "requests",
            "topology",
            "node_rows",
            "simgrid",
            "slurm",
            "describe",
        ),
        *("read", "catalogue", "maintenance", "failures"),
    ],
    "traces": [
        *(
            "errors",
            "files",
            "usage_traces",
            "profiles",
            "workload",
            "clean",
            "logs",
            "slurm",
            "slurm/state",
            "clusters",
            "batsim",
            "requests",
        ),
        *("describe", "transforms", "load", "catalogue", "generator", "outages", "resilience"),
    ],
    "server": [
        *("errors", "transport", "engine", "hosts", "attempts", "outages", "setup", "outputs", "batsim", "simulation"),
    ],
    "schedulers": [
        *(
            "policy",
            "waiting",
            "runtime",
            "placement",
            "plan",
            "sharing",
            "sharing/plan",
            "composed",
            "preemption",
            "backfill",
            "partitions",
        ),
        *(
            "pbs",
            "maui/config",
            "maui/priority",
            "maui/limits",
            "orders",
            "maui",
            "slurm/config",
            "slurm/files",
            "slurm/cluster",
            "slurm/accounts",
            "slurm/nodes",
            "slurm/priority",
            "slurm/passes",
            "slurm/backfill",
            "slurm",
            "catalogue",
            "wire",
            "wire/batsim",
        ),
    ],
    "models": ["samples", "workloads", "likeness", "reliability"],
    "runs": [
        *("slurm", "inputs", "description", "folders", "execution", "sessions", "conformance", "filling"),
        *("forecast", "recordings", "slurmctld", "recorder"),
    ],
    "reports": ["cases/library/kill-race", "placement", "report", "explain", "estimates", "page", "live", "cases"],
    "studies": ["errors", "measures", "trials", "inference", "pictures", "workers"],
    "api": [
        *(
            "options",
            "tables",
            "derived",
            "plots",
            "repeat",
            "results",
            "progress",
            "runs",
            "comparisons",
            "studies",
            "inputs",
            "schedulers",
        ),
    ],
    "cli": [
        *("doors", "terminal", "options", "workload", "live", "run", "schedulers", "inputs", "results", "study"),
        *("manual", "main", "__main__", "top"),
    ],
}
#: shows the progress of runs that a script or a notebook starts
PROGRESS = "api/progress.py"
#: makes forks of this process, which end by themselves
FORK = "studies/workers/fork.py"
#: standard library without clocks, files, sockets, processes or random numbers
HARMLESS = {
    "abc",
    "array",
    "bisect",
    "collections",
    "contextlib",
    "dataclasses",
    "decimal",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "importlib.metadata",
    "itertools",
    "json",
    "math",
    "mypy_extensions",  # marks for the compiled build, which do nothing
    "operator",
    "re",
    "struct",
    "tomllib",
    "typing",
}

#: what the core may import besides HARMLESS
CORE = {
    # a parser of text
    "protocol": {"msgspec", "xml.parsers.expat"},
    # files of the package
    "platforms": {"msgspec", "numpy", "importlib.resources"},
    "server": {"msgspec", "numpy"},
}

#: modules that deal with the world outside, and what they use of it; everything else in these layers is the core
WORLDLY = {
    # the calendar and the rules of zones; no clock is read
    "platforms/maintenance/dates.py": {"datetime", "zoneinfo"},
    "protocol/units/indices.py": {"numpy"},
    "protocol/base/lengths.py": {"datetime"},  # the calendar; no clock is read
    "protocol/base/log.py": {"loguru", "sys", "warnings"},  # all layers write to the log; scripts get warnings
    # all layers write their files with it
    "protocol/base/whole.py": {"errno", "fcntl", "io", "open", "os", "stat"},
    "protocol/schema.py": {"sys"},  # when run as a program it writes the schema to standard output
    "protocol/sockets.py": {"os"},
    "server/outputs/folder.py": {"pathlib"},
    # process names, read from the kernel
    "server/outputs/lock.py": {"fcntl", "os", "pathlib", "shlex", "socket", "sys"},
    "server/outputs/once.py": {"pathlib"},
    "server/outputs/csv_file.py": {"pathlib", "open", "io"},
    "server/simulation/simulate.py": {"pathlib", "platform"},  # where outputs go; Python's version for out_config.json
    "server/transport/peer.py": {"time"},
    "server/transport/endpoint.py": {"socket", "errno", "fcntl", "pathlib"},
    "server/transport/connection.py": {"socket"},
    "server/transport/curve.py": {"zmq", "socket", "os"},
    "server/transport/doorway.py": {"socket", "selectors", "os", "resource", "threading", "time"},
    "server/transport/listener.py": {"selectors", "errno", "resource"},
    "server/transport/native.py": {"socket", "time", "pathlib"},
    "server/transport/batsim.py": {"zmq", "time"},
}

#: modules that open files for writing
WRITERS = {
    "protocol/base/whole.py",
    # files that grow: they have whole lines at any time
    "server/outputs/csv_file.py",
    "studies/trials/line_file.py",
    "runs/sessions/session_file.py",
    "server/outputs/lock.py",
}
#: modules that read files of the package, or outputs that they have just written; all others read with
#: `protocol/base/whole.py`, which waits for no pipe
READERS = {
    "platforms/catalogue.py",
    "platforms/slurm/keys.py",
    "traces/slurm/sbatch.py",
    "schedulers/slurm/files/limits.py",
    "reports/page/document.py",
    "reports/cases/golden.py",
    "runs/conformance/scripts.py",
    "schedulers/catalogue/presets.py",
    "schedulers/maui/config/parameters.py",
    "schedulers/plan/machine_code.py",
    "papers/bench.py",
    "papers/printed.py",
    "cli/schedulers/new.py",
    "cli/inputs/library.py",
    "cli/manual.py",
}
#: modes of `open` that write
_MODES = {f"{way}{more}" for way in "wxa" for more in ("", "b", "t", "+", "b+", "+b")} | {"r+", "r+b", "rb+"}

ZMQ_MODULES = {
    "server/transport/batsim.py",
    "server/transport/curve.py",
    "schedulers/wire/curve.py",
    "runs/inputs/keys.py",  # makes keys
}
#: forbidden in every layer: what would make runs differ, or execute what a file or a peer sends
BANNED_MODULES = {"random", "pickle", "marshal", "shelve", "dill", "cloudpickle", "secrets", "uuid"}
BANNED_CALLS = {"eval", "exec", "compile", "__import__"}
#: from numpy.random, only what makes a generator from a seed
SEEDED = {"Generator", "PCG64", "PCG64DXSM", "Philox", "SeedSequence", "BitGenerator"}
MAX_LINES = 700
#: a module with fewer lines of code, its docstrings apart, is a splinter
LEAST_LINES = 9


class Module:
    """A source file: its name from the project's top, its layer, its syntax tree and what occurs in that."""

    def __init__(self, path: Path, layer: str) -> None:
        self.name = path.relative_to(ROOT).as_posix()
        self.layer = layer
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.nodes = list(ast.walk(self.tree))

    @cached_property
    def imports(self) -> frozenset[str]:
        """Every imported module's full name, wherever the import stands."""
        found = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
        return frozenset(found)

    @cached_property
    def calls(self) -> frozenset[str]:
        """The name of every function called by its bare name."""
        calls = (node.func for node in self.nodes if isinstance(node, ast.Call))
        return frozenset(called.id for called in calls if isinstance(called, ast.Name))

    @cached_property
    def attributes(self) -> frozenset[str]:
        """Every attribute of a name in the code, with what it is taken from, such as ``np.random.seed``."""
        return frozenset(
            ast.unparse(node) for node in self.nodes if isinstance(node, ast.Attribute) and _is_dotted(node)
        )


def _is_dotted(node: ast.expr) -> bool:
    """Return whether an expression is a name, or an attribute of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def room_of(path: str) -> str:
    """Return the room that a module's path from the project's top lies in; empty for a layer's own ``__init__.py``."""
    folders = Path(path).parent.parts[1:]
    return "/".join(folders) or Path(path).stem.replace("__init__", "")


def imported_from(module: Module) -> Iterator[str]:
    """Yield the path of every other module of ours that a module imports, or imports something from."""
    for name in module.imports:
        path = paths_of_names().get(name) or paths_of_names().get(name.rpartition(".")[0])
        if path is not None and path != module.name:
            yield path


def is_one_of(name: str, modules: set[str]) -> bool:
    """Tell whether a dotted name is one of the modules or something inside one."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


@cache
def modules() -> list[Module]:
    """Return every module of every layer; read by the first test that asks for them."""
    return [Module(path, layer) for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]


@cache
def paths_of_names() -> dict[str, str]:
    """Return {dotted name: path from the project's top} of all modules and packages."""
    dotted = {module.name.removesuffix(".py").replace("/", "."): module.name for module in modules()}
    return {f"pipistrelle.{name}".removesuffix(".__init__"): path for name, path in dotted.items()}


def of_core() -> list[Module]:
    """Return the modules of the layers that touch neither clock nor file nor socket."""
    return [module for module in modules() if module.layer in CORE]


def test_every_code_folder_is_a_layer() -> None:
    """The layers of this test are the folders that hold a package; tests/test_packaging.py compares pyproject.toml."""
    assert set(LAYERS) == {path.parent.name for path in ROOT.glob("*/__init__.py")}


def test_imports_point_downwards() -> None:
    """A module imports our own packages from its layer or from lower ones only."""
    for module in modules():
        allowed = {module.layer} | LAYERS[module.layer]
        used = {name.split(".")[1] for name in module.imports if name.startswith("pipistrelle.")}
        assert used <= allowed, f"{module.name} imports {sorted(used - allowed)}"


@pytest.mark.parametrize("layer", ROOMS_IN_ORDER)
def test_rooms_import_from_lower_rooms_only(layer: str) -> None:
    """No module of a layer imports from a room that is declared later, so rooms make no circles."""
    order = {room: place for place, room in enumerate(ROOMS_IN_ORDER[layer])}
    upward = {
        f"{module.name} imports {path}"
        for module in modules()
        for path in imported_from(module)
        if module.layer == layer == path.partition("/")[0]
        if order[room_of(path)] > order[room_of(module.name)]
    }

    assert upward == set()


@pytest.mark.parametrize("layer", ROOMS_IN_ORDER)
def test_every_room_of_a_layer_is_in_the_order(layer: str) -> None:
    """The declared order names each room of the layer once, and no room that does not exist."""
    assert sorted(ROOMS_IN_ORDER[layer]) == sorted(
        {room_of(module.name) for module in modules() if module.layer == layer} - {""}
    )


def test_imports_are_absolute() -> None:
    """No relative import, no ``import *``, and never ``import pipistrelle`` as a whole."""
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module.name}:{node.lineno}"
                assert all(alias.name != "*" for alias in node.names), f"{module.name}:{node.lineno}"
        assert "pipistrelle" not in module.imports, module.name


def test_the_core_touches_neither_clock_nor_file_nor_socket() -> None:
    """Protocol, platforms and the server's core import msgspec, numpy and harmless standard library only."""
    for module in of_core():
        allowed = HARMLESS | CORE[module.layer] | WORLDLY.get(module.name, set()) | {"pipistrelle"}
        foreign = {name for name in module.imports if not is_one_of(name, allowed)}
        assert not foreign, f"{module.name} imports {sorted(foreign)}"


def test_the_core_opens_no_file() -> None:
    """Only the recorder calls ``open``; `Path` objects occur only in the modules listed above."""
    for module in of_core():
        if "open" in WORLDLY.get(module.name, set()):
            continue
        assert "open" not in module.calls, module.name


def test_the_exceptions_are_needed() -> None:
    """Each worldly module exists and still uses all that it is allowed to."""
    by_name = {module.name: module for module in modules()}
    for name, extras in WORLDLY.items():
        module = by_name[name]
        used = module.imports | module.calls
        unused = {extra for extra in extras if not any(is_one_of(thing, {extra}) for thing in used)}
        assert not unused, f"{name} no longer uses {sorted(unused)}"


def test_only_the_transports_import_zmq() -> None:
    """The transport modules import zmq, and what makes their keys; no other module does."""
    assert {module.name for module in modules() if any(is_one_of(name, {"zmq"}) for name in module.imports)} == (
        ZMQ_MODULES
    )


def test_no_module_uses_global_randomness_or_executes_text() -> None:
    """No module of ours uses a global random generator, unpickles, or evaluates text as code."""
    for module in modules():
        assert not {name for name in module.imports if is_one_of(name, BANNED_MODULES)}, module.name
        assert not BANNED_CALLS & module.calls, module.name
        drawn = {name for name in module.attributes if re.fullmatch(r"(np|numpy)\.random\.\w+", name)}
        drawn = {name.rpartition(".")[2] for name in drawn}
        assert drawn <= SEEDED, f"{module.name} uses numpy.random's {sorted(drawn - SEEDED)}"


def test_only_the_command_line_prints_and_exits() -> None:
    """No layer below the command line writes to the terminal, sets up the log or ends the process."""
    for module in modules():
        if module.layer == "cli":
            continue
        assert not {"print", "exit", "quit"} & module.calls, module.name
        ends = {"sys.exit", "os._exit", "os.abort", "logger.add", "logger.remove"}
        if module.name == FORK:  # it must not do what its parent does at exit
            ends.remove("os._exit")
        elif "sys" not in WORLDLY.get(module.name, set()) and module.name != PROGRESS:
            ends |= {"sys.stdout", "sys.stderr"}
        assert not ends & module.attributes, module.name
        assert not {name for name in module.imports if is_one_of(name, {"click", "rich"})}, module.name


def test_no_module_has_a_name_of_the_standard_library() -> None:
    """A module or folder called ``queue`` or ``profile`` would be mistaken for Python's own."""
    for module in modules():
        assert sys.stdlib_module_names.isdisjoint(Path(module.name).with_suffix("").parts), module.name


def _writes_files(module: Module) -> Iterator[str]:
    """Yield every call in a module that opens a file for writing."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in ("write_text", "write_bytes", "copyfile", "copytree", "NamedTemporaryFile", "mkstemp"):
            text = ast.unparse(node)
        elif name == "open" and not any(one.arg == "closefd" for one in node.keywords):
            text = " ".join(
                one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and one.value in _MODES
            )
            text = text or (ast.unparse(node) if "O_CREAT" in ast.unparse(node) else "")
        else:
            continue
        if text:
            yield f"{name}: {text}"


def test_every_file_is_written_by_one_function() -> None:
    """No other module opens a file for writing, except for files that grow, such as a run's tables, and locks."""
    for module in modules():
        assert module.name in WRITERS or not list(_writes_files(module)), module.name


def test_only_some_modules_read_files_their_own_way() -> None:
    """All others read with `protocol/base/whole.py`, which neither waits for a pipe nor reads a device for ever."""
    found = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in ("read_bytes", "read_text")
    }

    assert found == READERS


def test_files_are_short() -> None:
    """No source file of the package, its tests or its benchmarks has more than 700 lines."""
    paths = [path for folder in [*LAYERS, "tests", "benchmarks", "docs"] for path in (ROOT / folder).rglob("*.py")]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    long = {path.relative_to(ROOT).as_posix(): count for path, count in lengths.items() if count > MAX_LINES}

    assert not long


def test_benchmarks_are_type_checked() -> None:
    """pyproject.toml names each of them for mypy, and the folders beside them, and the scripts in tests/typing."""
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    folders = [ROOT / "benchmarks", ROOT / "tests" / "typing"]
    names = {path.relative_to(top).with_suffix("").parts[0] for top in folders for path in top.rglob("*.py")}

    assert names == {*mypy["modules"], *mypy["packages"]} - {"pipistrelle"}


def test_the_links_for_type_checkers_are_whole() -> None:
    """``.dev/pipistrelle`` holds one relative link a layer, and nothing else."""
    links = {path.name: path.readlink().as_posix() for path in (ROOT / ".dev" / "pipistrelle").iterdir()}

    top = {name: f"../../cli/top/{name}" for name in ("__init__.py", "__main__.py")}
    assert links == {layer: f"../../{layer}" for layer in LAYERS} | top


def code_lines(path: Path) -> int:
    """Return the number of a file's lines of code, without blank lines, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    said: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            said.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if line.strip() and not line.strip().startswith("#") and number not in said)


def files_of(room: Path) -> list[Path]:
    """Return the modules of a room, apart from those that every room may have."""
    return [path for path in room.glob("*.py") if path.name not in {"__init__.py", "__main__.py"}]


ROOMS = sorted({path.parent for layer in LAYERS for path in (ROOT / layer).glob("*/**/__init__.py")})


def test_a_room_has_three_to_twelve_files() -> None:
    """A room answers one question; fewer files are no room, more are two."""
    counts = {room.relative_to(ROOT).as_posix(): len(files_of(room)) for room in ROOMS}

    del counts["cli/top"]  # not a room: the package itself
    assert {room for room, count in counts.items() if not 3 <= count <= 12} == set()


def test_no_file_is_a_splinter() -> None:
    """A module of a few lines joins its neighbour; a layer's module of errors may be short."""
    small = {
        path.relative_to(ROOT).as_posix()
        for folder in [*ROOMS, *(ROOT / layer for layer in LAYERS)]
        for path in files_of(folder)
        if path.name != "errors.py" and code_lines(path) < LEAST_LINES
    }

    assert small == set()


def test_a_name_is_one_class() -> None:
    """No two public classes of the project have the same name."""
    homes: dict[str, list[str]] = {}
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module.name)

    assert {name for name, places in homes.items() if len(places) > 1} == set()


def test_no_modules_import_each_other() -> None:
    """Imports form no cycle, not even those for type checkers."""
    imports = {module.name: set(imported_from(module)) for module in modules()}
    reached: dict[str, set[str]] = {}
    for begin in imports:
        seen, ahead = set[str](), [begin]
        while ahead:
            new = imports[ahead.pop()] - seen
            seen |= new
            ahead += new
        reached[begin] = seen

    assert {name for name, seen in reached.items() if name in seen} == set()
