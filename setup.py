"""Compile the package's most used modules if ``PIPISTRELLE_COMPILE=1``.

mypyc turns these modules into extension modules. The wheel holds both, and Python imports the extensions first. The
file docs/how-to/compiled.md gives the speedup. All other build settings are in pyproject.toml.
"""

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

from setuptools import setup

ROOT = Path(__file__).resolve().parent
#: build folder in which each file has the path of its import name
VIEW = Path("build", "compiled")
COMPILED = (
    "protocol/base/state.py",
    "protocol/session.py",
    "protocol/units/free.py",
    "protocol/zmtp.py",
    "schedulers/backfill/easy.py",
    "schedulers/backfill/waking.py",
    "schedulers/composed.py",
    "schedulers/orders/fixed.py",
    "schedulers/placement/lowest.py",
    "schedulers/policy/ends_and_shadow.py",
    "schedulers/policy/jobs.py",
    "schedulers/policy/running.py",
    "schedulers/policy/view.py",
    "schedulers/runtime/runtime.py",
    "schedulers/waiting/by_size.py",
    "schedulers/waiting/moving.py",
    "schedulers/waiting/ranked.py",
    "schedulers/wire/native.py",
    "schedulers/wire/zmtp.py",
    "server/engine/agenda.py",
    "server/engine/arrivals.py",
    "server/engine/clockwork.py",
    "server/engine/cluster.py",
    "server/engine/engine.py",
    "server/engine/ledger.py",
    "server/engine/lives.py",
    "server/engine/verdicts.py",
    "server/outputs/recorder.py",
    "server/setup/workload_jobs.py",
    "server/simulation/loop.py",
    "server/transport/connection.py",
    "server/transport/in_process.py",
    "server/transport/native.py",
    "server/transport/peer.py",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: build requirements besides setuptools: the compiler, and the packages whose types it reads
NEEDED = ("mypy[mypyc]>=2.4", *PROJECT["project"]["dependencies"])


def compiled() -> dict[str, Any]:
    """Return the arguments of `setup` that compile the modules; none unless requested.

    If the compiler is missing while pip asks for the build requirements, return only those requirements.

    Raises:
        SystemExit: with a message, if the modules cannot be compiled.
    """
    asked = os.environ.get("PIPISTRELLE_COMPILE", "0")
    if asked not in {"0", "1"}:
        raise SystemExit(f"PIPISTRELLE_COMPILE is {asked!r}: expected 1 (compile) or 0")
    if asked == "0":
        return {}
    if {"editable_wheel", "develop"} & set(sys.argv):
        raise SystemExit("PIPISTRELLE_COMPILE=1: an editable install would not see its edits; install without -e")
    try:
        from mypyc.build import mypycify
    except ImportError:
        if "egg_info" in sys.argv or "dist_info" in sys.argv:  # pip asks for the requirements and then installs them
            return {"setup_requires": NEEDED}
        raise SystemExit(f"PIPISTRELLE_COMPILE=1 needs {' '.join(NEEDED)}; pip installs them by itself") from None
    lay_out()
    files = [str(VIEW / "pipistrelle" / name) for name in COMPILED]
    return {
        "setup_requires": NEEDED,
        "ext_modules": mypycify(["--config-file=", "--ignore-missing-imports", *files], opt_level="3", debug_level="0"),
    }


def lay_out() -> None:
    """Create links to the source files under their package paths."""
    folders = PROJECT["tool"]["setuptools"]["package-dir"]
    top = VIEW / "pipistrelle"
    top.mkdir(parents=True, exist_ok=True)
    for name in ("__init__.py", *(package.partition(".")[2] for package in folders if "." in package)):
        target = ROOT / (folders["pipistrelle"] + "/__init__.py" if name == "__init__.py" else name)
        link = top / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)


setup(**compiled())
