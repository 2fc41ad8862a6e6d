"""The kernel's queue against a plain list, and the compiled functions without a compiler."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.kernel import waiting as queues
from pipistrelle.kernel.waiting import BLOCK, drop_first, join, make_queue, pass_over, tidy


class List:
    """The same queue as a plain list of (rank, number, job, size, walltime)."""

    def __init__(self) -> None:
        self.rows: list[tuple] = []

    def join(self, *row) -> None:
        """Let a job join."""
        self.rows = sorted([*self.rows, row])

    def pass_over(self, free: int, extra: int, shadow: float, now: float) -> tuple[list[int], int, int]:
        """Start those that may pass the first."""
        chosen, kept = [], self.rows[:1]
        for row in self.rows[1:]:
            *_, job, size, time = row
            late = now + time > shadow
            if size <= free and (not late or size <= extra):
                chosen.append(job)
                free -= size
                extra -= size if late else 0
            else:
                kept.append(row)
        self.rows = kept
        return chosen, free, extra


def in_order(queue: queues.Queue) -> list[int]:
    """Return the jobs of a queue in order, after checking its index."""
    found = []
    lines = queue.line[: queue.counts.line].tolist()
    for place, block in enumerate(lines):
        at = np.arange(block * BLOCK + queue.first[block], block * BLOCK + queue.end[block])
        found += queue.job[at].tolist()
        if place == 0:
            continue
        assert at.size, "a block is empty"
        assert queue.least_size[block] == queue.size[at].min()
        classes = int(queue.size_class[-1]) + 1
        for power in range(classes):
            times = queue.occupies[at][queue.size[at] < 2 << power]
            assert queue.least_time[block * classes + power] == times.min(initial=np.inf)
    spare = queue.spare[: queue.counts.spare].tolist()
    assert sorted(lines + spare) == list(range(queue.line.size)), "blocks are lost"
    assert queue.counts.waiting == len(found)
    return found


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 50]), st.booleans())
def test_the_queue_is_a_sorted_list(seed: int, ranks: int, in_turn: bool) -> None:
    """Jobs join at their ranks and leave from the front and by passing, whatever blocks they are in."""
    random = np.random.Generator(np.random.PCG64(seed))
    jobs, units = 500, 100
    queue, twin = make_queue(jobs, units), List()
    for job in range(jobs):
        size = int(min(2 ** random.integers(0, 7) + random.integers(0, 2), units))
        time = float(random.integers(1, 50))
        queue.rank[job] = job if in_turn else random.integers(0, ranks)
        queue.number[job] = job
        join(queue, job, size, time)
        twin.join(float(queue.rank[job]), job, job, size, time)
        if random.random() < 0.05 and twin.rows:
            for _ in range(int(random.integers(0, len(twin.rows) + 1))):
                drop_first(queue)
                twin.rows.pop(0)
        if random.random() < 0.1 and twin.rows:
            free, extra, shadow = (
                int(random.integers(0, 40)),
                int(random.integers(-1, 20)),
                float(random.integers(0, 60)),
            )
            chosen = np.zeros(jobs, dtype=np.int64)
            found, left, more = pass_over(queue, chosen, free, extra, shadow, 1.0)
            assert (chosen[:found].tolist(), left, more) == twin.pass_over(free, extra, shadow, 1.0)
        assert in_order(queue) == [row[2] for row in twin.rows]
    tidy(queue)
    assert in_order(queue) == [row[2] for row in twin.rows]


@pytest.mark.slow
def test_the_plain_functions_give_the_same_run(tmp_path) -> None:
    """With NUMBA_DISABLE_JIT=1 nothing is compiled, and the run has the same results."""
    program = (
        "import sys, hashlib\n"
        "from pipistrelle.runs.inputs.named import load_platform\n"
        "from pipistrelle.kernel import kernel, loop\n"
        "from pipistrelle.runs.description.setup import load_setup\n"
        "from pipistrelle.runs.description.spec import RunSpec\n"
        "spec = RunSpec(platform='demo', failures=('exponential,mtbf=20d',), repair='6h', checkpoint='daly', dump='1min')\n"  # noqa: E501
        "made = kernel.simulate(load_setup(spec), spec, keeping=True)\n"
        "texts = [column.tobytes() for column in (*made.attempts, made.busy)]\n"
        "print(hasattr(loop.advance, 'py_func'), len(made.attempts.job), hashlib.sha256(b''.join(texts)).hexdigest())\n"
    )
    said = []
    for value in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "NUMBA_DISABLE_JIT": value},
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(done.stdout.split())
    assert [words[0] for words in said] == ["True", "False"]
    assert said[0][1:] == said[1][1:]
    assert int(said[0][1]) > 0


@pytest.mark.parametrize("word", [0, 1, 2**62 - 1, 2**61, 0x2AAAAAAAAAAAAAAA])
def test_bits_are_counted(word: int) -> None:
    """The number of bits of a word of 62."""
    from pipistrelle.kernel.sets import bits_in

    assert bits_in(word) == word.bit_count()
