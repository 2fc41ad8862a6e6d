"""Compile the modules that every job of a run passes through, if ``PIPISTRELLE_COMPILE=1``.

Everything else about the package is in pyproject.toml. mypyc turns these files into extension modules that lie beside
them in the wheel, and Python imports the extensions first (docs/how-to/compiled.md has the gain).
"""

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

from setuptools import setup

ROOT = Path(__file__).resolve().parent
#: a tree in which the files have the names that they are imported by
VIEW = Path("build", "compiled")
COMPILED = (
    "protocol/base/state.py",
    "protocol/units/free.py",
    "schedulers/backfill/easy.py",
    "schedulers/placement/lowest.py",
    "schedulers/policy/ends_and_shadow.py",
    "schedulers/policy/jobs.py",
    "schedulers/policy/running.py",
    "schedulers/policy/view.py",
    "schedulers/runtime/runtime.py",
    "schedulers/waiting/moving.py",
    "schedulers/waiting/ranked.py",
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
    "server/transport/in_process.py",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: what the build needs besides setuptools: the compiler, and for its types what the modules import
NEEDED = ("mypy[mypyc]>=2.4", *PROJECT["project"]["dependencies"])


def compiled() -> dict[str, Any]:
    """Return setuptools' arguments for the extensions: how to build them, or what that needs.

    Raises:
        SystemExit: with a message, if they cannot be built.
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
        if "egg_info" in sys.argv or "dist_info" in sys.argv:  # pip asks what is needed, and installs it
            return {"setup_requires": NEEDED}
        raise SystemExit(f"PIPISTRELLE_COMPILE=1 needs {' '.join(NEEDED)}; pip installs them by itself") from None
    lay_out()
    files = [str(VIEW / "pipistrelle" / name) for name in COMPILED]
    return {
        "setup_requires": NEEDED,
        "ext_modules": mypycify(["--config-file=", "--ignore-missing-imports", *files], opt_level="3", debug_level="0"),
    }


def lay_out() -> None:
    """Link the files under the names of their packages."""
    folders = PROJECT["tool"]["setuptools"]["package-dir"]
    top = VIEW / "pipistrelle"
    top.mkdir(parents=True, exist_ok=True)
    for name in ("__init__.py", *(package.partition(".")[2] for package in folders if "." in package)):
        target = ROOT / (folders["pipistrelle"] + "/__init__.py" if name == "__init__.py" else name)
        link = top / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)


setup(**compiled())
