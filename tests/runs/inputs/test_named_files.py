"""Files that other files name: inside the folder, regular, with the recorded digest, and never waited for."""

import os

import msgspec
import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import recorded_spec, with_digests
from pipistrelle.runs.inputs.named import load_platform
from pipistrelle.schedulers.maui.config.read import read_maui_config
from pipistrelle.traces.load import load

LINES = "name,secret\nsecret line\n"


@pytest.fixture
def machine(tmp_path):
    """Return a function that writes a platform which names a table of nodes, and returns its path."""
    (tmp_path / "secret.csv").write_text(LINES)
    folder = tmp_path / "machine"
    folder.mkdir()

    def write(table: str) -> str:
        path = folder / "machine.toml"
        path.write_text(f'name = "x"\nnode_table = "{table}"\n[[pools]]\nname = "p"\nnodes = 2\nnames = "n[1-2]"\n')
        return str(path)

    return write


def test_a_table_of_nodes_beside_its_platform_is_read(machine, tmp_path):
    """A link inside the folder does no harm."""
    (tmp_path / "machine" / "sub").mkdir()
    (tmp_path / "machine" / "sub" / "table.csv").write_text("name,class\nn1,old\n")
    (tmp_path / "machine" / "link.csv").symlink_to("sub/table.csv")

    for table in ("sub/table.csv", "link.csv"):
        assert [group.node_class for group in load_platform(machine(table)).groups] == ["old"]


@pytest.mark.parametrize(
    "table", ["../secret.csv", "link.csv", "{tmp_path}/secret.csv", "fifo", "sub", "none.csv", "/dev/zero"]
)
def test_a_platform_cannot_name_a_file_elsewhere(machine, tmp_path, table):
    """No link, absolute path, pipe or device either; the message does not quote the file."""
    folder = tmp_path / "machine"
    (folder / "link.csv").symlink_to("../secret.csv")
    (folder / "sub").mkdir()
    os.mkfifo(folder / "fifo")

    with pytest.raises(PipistrelleError, match="not a file in the platform's folder") as error:
        load_platform(machine(table.format(tmp_path=tmp_path)))
    assert "line" not in str(error.value)


def test_a_pipe_that_nobody_writes_is_not_waited_for(tmp_path):
    """It is an empty file."""
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(PipistrelleError, match="is empty"):
        load(tmp_path / "fifo")
    assert read_maui_config(tmp_path / "fifo")[1] == []


def test_inputs_of_a_strangers_recording_need_their_digests(tmp_path):
    """A description that names my files without their digests is refused before one of them is parsed."""
    log = tmp_path / "log.swf"
    log.write_text("secret line\n")
    spec = RunSpec(platform="tiny", workload=[str(log)], scheduler="easy")
    recorded = msgspec.to_builtins(with_digests(spec))

    assert recorded_spec(recorded, "session").files == with_digests(spec).files
    for files, found in (({}, "has no digest"), ({str(log): "0" * 64}, "has changed")):
        with pytest.raises(PipistrelleError, match=found) as error:
            recorded_spec(recorded | {"files": files}, "session")
        assert "secret" not in str(error.value)
