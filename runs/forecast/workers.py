"""Compute the replicas of a forecast in several processes."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

from pipistrelle.protocol.base.errors import PipistrelleError

T = TypeVar("T")


def in_order(compute: Callable[[int], T], count: int, jobs: int | None = None) -> Iterator[T]:
    """Yield ``compute(0)`` to ``compute(count - 1)``, in this order.

    Forked processes share the work, so ``compute`` may be any function. Its results must be picklable.

    Args:
        jobs: number of processes; None: one per processor; 1: this process computes everything.

    Raises:
        PipistrelleError: a process ended too early.
    """
    workers = min(count, jobs or len(os.sched_getaffinity(0)))
    if workers <= 1:
        yield from map(compute, range(count))
        return
    context = multiprocessing.get_context("fork")
    pipes: list[Connection] = []
    processes: list[BaseProcess] = []
    try:
        for worker in range(workers):
            receives, sends = context.Pipe(duplex=False)
            process = context.Process(
                target=_work, args=(compute, range(worker, count, workers), sends, [*pipes, receives]), daemon=True
            )
            with warnings.catch_warnings():
                # Python 3.12 warns if there are other threads, such as those of a notebook. The fork uses none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            sends.close()
            pipes.append(receives)
            processes.append(process)
        for number in range(count):
            try:
                yield pipes[number % workers].recv()
            except EOFError:
                raise PipistrelleError(
                    "a process that computed replicas of the forecast ended too early",
                    hint="If memory was short, use fewer processes: --jobs 1.",
                ) from None
    finally:
        for started in processes:
            started.terminate()
            started.join()
        for pipe in pipes:
            pipe.close()


def _work(compute: Callable[[int], T], numbers: range, sends: Connection, others: list[Connection]) -> None:
    """Compute the results of these numbers and send each to the parent process."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)
    for pipe in others:
        pipe.close()
    for number in numbers:
        sends.send(compute(number))
