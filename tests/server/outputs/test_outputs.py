"""The files written once, and their folder."""

from pathlib import Path

import pytest

from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.lock import is_written, sole_writer
from pipistrelle.server.outputs.metrics import Metrics
from pipistrelle.server.outputs.once import to_json, write_output


def test_a_folder_is_made_with_its_parents_and_left_empty(tmp_path: Path) -> None:
    """The trial of whether it can be written to leaves no trace; an existing folder keeps its files."""
    folder = tmp_path / "a" / "b"
    with sole_writer(str(folder / "out")):
        assert [path.name for path in folder.iterdir()] == [".out.lock"]
    assert list(folder.iterdir()) == []
    (folder / "mine").write_text("kept")
    with sole_writer(str(folder / "out")):
        assert is_written(str(folder / "out"))
    assert not is_written(str(folder / "out"))

    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """The error says which, why, and what to do."""
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputFailed, match=r"cannot write to the output folder.*Choose another with --out") as e:
            sole_writer(str(path / "out")).__enter__()
        assert e.value.where == str(path)
        assert e.value.exit_code == 6


def test_a_folder_with_an_impossible_name_is_refused(tmp_path: Path) -> None:
    """A name that is too long for the file system is an output that cannot be written."""
    with pytest.raises(OutputFailed, match="name too long"):
        sole_writer(str(tmp_path / ("x" * 300) / "out")).__enter__()


def test_a_file_is_written_as_it_is(tmp_path: Path) -> None:
    """UTF-8, unchanged line ends, an older file replaced, no temporary file left; a link stays a link."""
    path = tmp_path / "out"
    (tmp_path / "link").symlink_to(path)
    write_output(path, "a much longer text than the next")
    write_output(path, "ü\n\r\n")

    assert path.read_bytes() == b"\xc3\xbc\n\r\n"
    write_output(tmp_path / "link", "new")
    assert path.read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_cannot_be_written_is_an_output_failure(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(OutputFailed, match="No such file or directory") as caught:
        write_output(tmp_path / "absent" / "out", "text")

    assert caught.value.where == str(tmp_path / "absent" / "out")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_an_output_failure() -> None:
    """The error says it."""
    with pytest.raises(OutputFailed, match="No space left on device"):
        write_output(Path("/dev/full"), "text")


def test_json_is_indented_and_ends_with_a_newline() -> None:
    """Values are in the order given; doubles have all their digits."""
    text = to_json({"b": 0.1, "a": None})
    summary = to_json(Metrics().summary())

    assert text == '{\n  "b": 0.1,\n  "a": null\n}\n'
    assert summary.startswith('{\n  "reason": "error",\n')
    assert summary.endswith("}\n")
