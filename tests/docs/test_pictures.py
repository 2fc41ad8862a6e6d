"""The page of pictures: each file exists and is reproduced by the commands above it."""

import re
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.conftest import load_program

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "how-to" / "pictures.md"
#: largest size of a picture in bytes
LARGEST = 200_000


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """Return docs/make_pictures.py as a module."""
    return load_program("docs/make_pictures.py")


def size_of(path: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_each_picture_has_its_commands(maker: ModuleType) -> None:
    """Every picture follows a block of commands, lies in docs/pictures and is small; no file there is unused."""
    shown = re.findall(r"!\[[^\]]+\]\((\S+)\)", PAGE.read_text(encoding="utf-8"))
    pictures = maker.pictures()

    assert [picture.path for picture in pictures] == [ROOT / "docs" / path.removeprefix("../") for path in shown]
    assert all(picture.commands for picture in pictures)
    assert {picture.path for picture in pictures} == set((ROOT / "docs" / "pictures").iterdir())
    assert all(picture.path.stat().st_size < LARGEST for picture in pictures)


@pytest.mark.slow
def test_all_pictures_are_reproduced(maker: ModuleType, browser: Any, tmp_path: Path) -> None:
    """Commands and browser reproduce all pictures: drawings byte for byte, screenshots with equal width and content."""
    maker.make(browser, tmp_path / "made")

    for picture in maker.pictures():
        made = tmp_path / "made" / picture.path.name
        if picture.part:
            assert size_of(made)[0] == pytest.approx(size_of(picture.path)[0], abs=40)
            assert made.stat().st_size > picture.path.stat().st_size / 3
        else:
            assert made.read_bytes() == picture.path.read_bytes()
