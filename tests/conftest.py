"""Fixtures that more than one test file needs."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def project_root() -> Path:
    """Return the project's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def traces_dir() -> Path:
    """Return the folder of the real logs, or skip: they are not ours to redistribute."""
    folder = Path(os.environ.get("PIPISTRELLE_TRACES", ROOT.parent / "shared" / "traces"))
    if not (folder / "SHA256SUMS").is_file():
        pytest.skip(f"the real logs are absent: no {folder} (set PIPISTRELLE_TRACES)")
    return folder


@pytest.fixture(scope="session")
def batsim4_dir() -> Path:
    """Return the folder of the recordings of a real Batsim 4, or skip: they are not ours to redistribute."""
    folder = Path(os.environ.get("PIPISTRELLE_BATSIM4", ROOT.parent / "shared" / "batsim4"))
    if not (folder / "nonet4.xml").is_file():
        pytest.skip(f"the recordings of Batsim 4 are absent: no {folder} (set PIPISTRELLE_BATSIM4)")
    return folder
