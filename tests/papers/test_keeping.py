"""Interrupted parts and studies of papers resume without losing anything."""

import pytest

from pipistrelle.papers.bench import SIZES, Bench, open_parts
from pipistrelle.papers.entry import PapersError
from pipistrelle.server.errors import OutputFailed
from pipistrelle.studies.trials.study import Study

SMALL = SIZES["small"]


def counted(bench: Bench, name: str, counts: dict[str, int]) -> object:
    """Return a part of the bench, and count how often it is made."""

    def make() -> list[float]:
        counts[name] = counts.get(name, 0) + 1
        return [0.1, float(len(name))]

    return bench.part(name, make)


def test_parts_are_made_once(tmp_path):
    """Kept results are restored unchanged, however often the folder is opened."""
    counts: dict[str, int] = {}
    with open_parts(tmp_path, SMALL) as parts:
        first = [counted(Bench(SMALL, parts), name, counts) for name in ("a", "bb", "a")]
    with open_parts(tmp_path, SMALL) as parts:
        again = [counted(Bench(SMALL, parts), name, counts) for name in ("a", "bb", "ccc")]

    assert counts == {"a": 1, "bb": 1, "ccc": 1}
    assert first == [[0.1, 1.0], [0.1, 2.0], [0.1, 1.0]]
    assert again[:2] == first[:2]


def test_a_line_that_was_cut_off_is_made_again(tmp_path):
    """At any byte of it: complete lines stay."""
    counts: dict[str, int] = {}
    with open_parts(tmp_path, SMALL) as parts:
        for name in ("a", "bb"):
            counted(Bench(SMALL, parts), name, counts)
    path = tmp_path / "parts.jsonl"
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    for missing in range(1, len(last) + 1):
        path.write_bytes(whole[:-missing])
        counts.clear()
        with open_parts(tmp_path, SMALL) as parts:
            assert counted(Bench(SMALL, parts), "bb", counts) == [0.1, 2.0]
            assert counted(Bench(SMALL, parts), "a", counts) == [0.1, 1.0]
        assert counts == {"bb": 1}
        assert path.read_bytes() == whole


def test_a_folder_is_of_one_size(tmp_path):
    """Another size or version is rejected; an unreadable line is rejected and named."""
    with open_parts(tmp_path, SMALL) as parts:
        counted(Bench(SMALL, parts), "a", {})
    with pytest.raises(PapersError, match="another size, or of another version"), open_parts(tmp_path, SIZES["full"]):
        pass
    path = tmp_path / "parts.jsonl"
    kept = path.read_bytes()
    for broken in (b'{"part": \n', b'{"part": "\xf3", "value": 1}\n'):
        path.write_bytes(kept + broken)
        with (
            pytest.raises(PapersError, match=r"parts\.jsonl, line 3: a line of the saved parts is broken"),
            open_parts(tmp_path, SMALL),
        ):
            pass


def test_one_command_at_a_time_writes_to_a_folder(tmp_path):
    """A second process is rejected while the first runs."""
    with open_parts(tmp_path, SMALL), pytest.raises(OutputFailed, match="another run"), open_parts(tmp_path, SMALL):
        pass


@pytest.mark.slow
def test_an_interrupted_study_goes_on(tmp_path):
    """Completed trials are kept; the final results equal those of an uninterrupted run."""
    study = Study(
        {"platform": "demo", "transform": [{"step": "filter", "first": 50}], "failures": "exponential,mtbf=300d"},
        axes={"repair": ["1h", "5h"]},
        replicas=3,
        engine="reference",  # nothing to compile
    )
    told: list[str] = []

    def interrupt(text: str) -> None:
        told.append(text)
        if text.startswith("x: ") and not text.startswith("x: 0 "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Bench(SMALL, folder=tmp_path, jobs=1, tell=interrupt).study("x", study)
    done = (tmp_path / "x" / "journal.jsonl").read_bytes().count(b"\n")
    resumed = Bench(SMALL, folder=tmp_path, jobs=1).study("x", study)
    whole = Bench(SMALL, jobs=1).study("x", study)

    assert told[0] == "x"
    assert 1 <= done < 6
    assert len(resumed) == 6
    assert resumed.columns == whole.columns
