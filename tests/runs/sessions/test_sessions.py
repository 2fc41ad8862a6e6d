"""Sessions: recorded, played to schedulers and to the server, changed, cut off."""

import gzip
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from msgspec.structs import replace

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.messages import Reply, WakeAtEnd, WakeWhen
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.sessions.recording import Recorded, ServerDiffers
from pipistrelle.runs.sessions.replay import parting, replay, replay_server
from pipistrelle.runs.sessions.session_file import SessionError, SessionReader, SessionWriter
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.view import View

ENDINGS = ["jsonl", "jsonl.gz", "jsonl.xz", "jsonl.zst"]
FAILING = RunSpec(failures=("exponential,mtbf=300d",), repair="6h", max_attempts=3, until="3d")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recorded session of some days with failures."""
    path = tmp_path_factory.mktemp("sessions") / "s.jsonl"
    run(FAILING, RunOptions(connection=Recorded(InProcess(), path)))
    return path


class Otherwise:
    """EASY that decides otherwise once, when a job of more than one unit starts late enough."""

    def __init__(self, begin: float) -> None:
        self._policy = make_policy("easy")
        self._begin = begin
        self.name, self.order = "otherwise", self._policy.order

    def decide(self, view: View) -> None:
        """Decide, and turn the units of a job around."""
        before = len(view.decisions)
        self._policy.decide(view)
        if view.now >= self._begin and len(view.decisions) > before:
            view.decisions.pop()

    def wake_when(self, view: View) -> WakeWhen | None:
        """Wake as the recorded scheduler does."""
        return self._policy.wake_when(view)  # type: ignore[attr-defined, no-any-return]


def rewritten(session: Path, tmp_path: Path, change: object) -> SessionReader:
    """Return a session with changed lines."""
    lines = session.read_bytes().splitlines(keepends=True)
    path = tmp_path / "changed.jsonl"
    path.write_bytes(b"".join(change(lines)))  # type: ignore[operator]
    return SessionReader(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_scheduler_decides_the_same(tmp_path: Path, ending: str) -> None:
    """Compression does not matter; the server's report is the same."""
    path = tmp_path / f"s.{ending}"
    result = run(FAILING, RunOptions(connection=Recorded(InProcess(), path)))
    reader = SessionReader(path)
    found = replay(reader, InProcess(), FAILING)
    assert found.parting is None
    assert found.notices == result.times.round_trips
    assert replay_server(reader) == result.times.round_trips + 1
    head = path.read_bytes()[:4]
    assert {"jsonl": b'{"se', "jsonl.gz": b"\x1f\x8b\x08\x00", "jsonl.xz": b"\xfd7zX"}.get(ending, head) == head


def test_recording_changes_no_output(session: Path, tmp_path: Path) -> None:
    """Outputs have the same bytes with and without it, and two recordings of one run, too."""
    run(FAILING, RunOptions(out=tmp_path / "plain"))
    run(FAILING, RunOptions(out=tmp_path / "recorded", connection=Recorded(InProcess(), tmp_path / "t.jsonl")))
    for path in sorted((tmp_path / "plain").iterdir()):
        assert path.read_bytes() == (tmp_path / "recorded" / path.name).read_bytes(), path.name
    assert (tmp_path / "t.jsonl").read_bytes() == session.read_bytes()


def test_first_different_decision_is_found_with_queued_jobs(session: Path) -> None:
    """Date, both replies, position, and the queue at that time; everything before was the same."""
    found = replay(SessionReader(session), InProcess(Otherwise(86400.0)), FAILING).parting
    assert found is not None
    assert found.notice.now >= 86400
    assert found.place == len(found.found.events)
    left_out = found.recorded.events[found.place].data.job_id  # type: ignore[attr-defined]
    assert left_out in [job.id for job in found.queue]
    earlier = [one.notice for one in SessionReader(session).exchanges() if one.seq < found.notice.seq]
    assert all(job.submitted <= found.notice.now for job in found.queue)
    assert len(earlier) == found.notice.seq - 1


def test_other_schedulers_part_somewhere(session: Path) -> None:
    """By name, or with another order."""
    for spec in (RunSpec(scheduler="fcfs"), RunSpec(order="sjf")):
        assert replay(SessionReader(session), InProcess(), spec).parting is not None


def test_scheduler_with_more_features_is_rejected(session: Path) -> None:
    """The notices it would get were not recorded."""
    with pytest.raises(SessionError, match="features that were not recorded: labels"):
        replay(SessionReader(session), InProcess(), RunSpec(scheduler="maui"))


def _swapped(lines: list[bytes]) -> Iterator[bytes]:
    return iter([*lines[:10], lines[11], lines[10], *lines[12:]])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda lines: [*lines[:20], lines[20].replace(b'"now":', b'"now": '), *lines[21:]],
            "chain of digests is broken",
        ),
        (
            lambda lines: [lines[0].replace(b"easy", b"fcfs"), *lines[1:]],
            r"lines 2 to \d+: the chain of digests is broken",
        ),
        (lambda lines: [*lines[:7], *lines[8:]], r"lines 3 to \d+: the chain of digests is broken"),
        (_swapped, r"lines 3 to \d+: the chain of digests is broken"),
        (lambda lines: [*lines[:5], b"[" * 100_000 + b"\n"], "line 6: "),
        (lambda lines: [*lines[:5], b'{"chain":"x"}\n'], "lines 3 to 6: the chain of digests is broken"),
    ],
)
def test_changed_session_is_detected(session: Path, tmp_path: Path, change: object, says: str) -> None:
    """The lines up to the next digest are named, by either way of playing."""
    reader = rewritten(session, tmp_path, change)
    with pytest.raises(SessionError, match=says):
        list(reader.exchanges())
    if b"fcfs" not in (tmp_path / "changed.jsonl").read_bytes()[:300]:
        with pytest.raises(SessionError, match=says):
            replay_server(reader)


@pytest.mark.parametrize(
    "content", [b"", b"{}\n", b"nonsense", b"[" * 100_000, b"\xff\xfe", gzip.compress(b"x", mtime=0)]
)
def test_invalid_session_is_rejected(tmp_path: Path, content: bytes) -> None:
    """They are reported at once, in one message; so is a session of another format."""
    path = tmp_path / "s"
    path.write_bytes(content)
    with pytest.raises(SessionError, match="this is not a session"):
        SessionReader(path)
    with pytest.raises(SessionError, match="cannot read the session"):
        SessionReader(tmp_path / "missing")


@pytest.mark.parametrize("packer", [gzip.compress, lzma.compress, zstandard.compress])
def test_a_bomb_is_no_session(
    tmp_path: Path, packer: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before it fills the memory."""
    monkeypatch.setattr("pipistrelle.traces.files._SMALL", 1 << 20)
    (tmp_path / "s").write_bytes(packer(b"[" * (1 << 24)))
    with pytest.raises(PipistrelleError, match="unpacks to more than 200 times"):
        SessionReader(tmp_path / "s")


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncated_session_is_replayed_to_its_end(tmp_path: Path, ending: str) -> None:
    """As after the death of the recording process: whole lines count, whatever comes after them."""
    whole = tmp_path / f"s.{ending}"
    run(FAILING, RunOptions(connection=Recorded(InProcess(), whole)))
    path = tmp_path / f"cut.{ending}"
    data = whole.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])
    try:
        notices = replay(SessionReader(path), InProcess(), FAILING).notices
    except SessionError:
        assert ending == "jsonl.xz"  # its first block may not be whole
        return
    assert 0 <= notices < replay(SessionReader(whole), InProcess(), FAILING).notices


def test_a_changed_server_is_found_out(session: Path, tmp_path: Path) -> None:
    """Another reply leads to another notice; the first that differs is named."""
    reader, path = SessionReader(session), tmp_path / "other.jsonl"
    writer = SessionWriter(path)
    writer.begin(reader.header)
    changed = False
    for exchange in reader.exchanges():
        writer.notice(exchange.notice)
        reply = exchange.reply or b""
        other = reply if changed else reply.replace(b'"alloc":"0', b'"alloc":"1', 1)
        changed |= other != reply
        if exchange.reply is not None:
            writer.reply(other)
    writer.close()
    assert changed
    with pytest.raises(
        ServerDiffers, match=r"the server sends another message than the recorded one: expected .* found "
    ) as caught:
        replay_server(SessionReader(path))
    assert caught.value.exit_code == 1


def test_message_out_of_turn_is_rejected(session: Path, tmp_path: Path) -> None:
    """Though its digests are right: two notices in a row, a reply to none, frames that are none; the line is named."""
    header = SessionReader(session).header
    notice, reply = b'{"seq":1,"now":0.0,"events":[]}', b'{"reply_to":1,\n"now":0.0}'
    for number, (frames, says) in enumerate(
        [
            (["notice", "notice"], "line 4: .*a reply is missing"),
            (["notice", "reply", "reply"], "line 5: .*a notice is missing"),
            (["notice", "reply"], ""),
        ]
    ):
        path = tmp_path / f"{number}.jsonl"
        writer = SessionWriter(path)
        writer.begin(header)
        for kind in frames:
            getattr(writer, kind)({"notice": notice, "reply": reply}[kind])
        writer.close()
        if says:
            with pytest.raises(SessionError, match=says):
                list(SessionReader(path).exchanges())
        else:
            assert list(SessionReader(path).exchanges()) == [(1, notice, reply.replace(b"\n", b" "))]
    with pytest.raises(SessionError, match="notice 3: this is not a notice"):
        header.read_notice(b"[]", 3)
    with pytest.raises(SessionError, match="notice 1: this is not a reply"):
        header.read_reply(b"[]", header.read_notice(notice, 1))


def test_another_run_is_no_run_of_the_session(session: Path, tmp_path: Path) -> None:
    """The description in the session must give the run that was recorded."""
    reader, path = SessionReader(session), tmp_path / "other.jsonl"
    writer = SessionWriter(path)
    writer.begin(replace(reader.header, spec=reader.header.spec | {"until": "5h"}))
    for exchange in reader.exchanges():
        writer.notice(exchange.notice)
        if exchange.reply is not None:
            writer.reply(exchange.reply)
    writer.close()

    with pytest.raises(PipistrelleError, match="the session is of another run"):
        replay_server(SessionReader(path))


def test_a_changed_description_is_noticed_before_its_inputs_are_read(session: Path, tmp_path: Path) -> None:
    """The chain of digests covers the header."""
    with pytest.raises(SessionError, match="the chain of digests is broken"):
        replay_server(rewritten(session, tmp_path, lambda lines: [lines[0].replace(b'"6h"', b'"5h"'), *lines[1:]]))


def test_nothing_of_a_package_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without zstandard the error names the extra, and the other ending."""
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(SessionError, match=r"pipistrelle\[record\]"):
        run(FAILING, RunOptions(connection=Recorded(InProcess(), tmp_path / "s.jsonl.zst")))
    assert lzma  # the other endings need the standard library alone


def test_session_of_a_failed_scheduler_ends_with_the_last_notice(tmp_path: Path) -> None:
    """It can be played up to there, by either side."""

    class Fails(Otherwise):
        wake_when = Otherwise.wake_when  # a class with its own `decide` does not inherit it

        def decide(self, view: View) -> None:
            """Raise after a day."""
            if view.now >= 86400:
                raise ValueError("no more")
            super().decide(view)

    path = tmp_path / "s.jsonl"
    run(FAILING, RunOptions(connection=Recorded(InProcess(Fails(1e9)), path), check=False))
    *answered, last = SessionReader(path).exchanges()
    assert last.reply is None
    assert SessionReader(path).header.read_notice(last.notice, last.seq).now >= 86400
    assert all(one.reply is not None for one in answered)
    with pytest.raises(ServerDiffers, match="the session ends with this notice, which has no reply"):
        replay_server(SessionReader(path))
    assert replay(SessionReader(path), InProcess(Otherwise(1e9)), FAILING).notices == len(answered)


def test_wake_conditions_are_no_difference() -> None:
    """Only decisions are compared, if the recorded reply has conditions; else fewer wake-ups match."""
    held = Reply(1, 5.0, wake=("JOB_COMPLETED",), wake_when=WakeWhen(completed=(WakeAtEnd(free=3),)))
    filtered, free = Reply(1, 5.0, wake=("JOB_COMPLETED",)), Reply(1, 5.0)

    assert [parting(held, other) for other in (held, filtered, free)] == [None, None, None]
    assert [parting(filtered, other) for other in (held, filtered, free)] == [None, None, 0]
