"""The Python objects of a study.

They are schedulers, workloads and machines that no file names.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.errors import printable
from pipistrelle.runs.description.policy import PolicySpec, step_of
from pipistrelle.runs.description.setup import Inputs, SetupCache, changed_jobs, changed_machine, load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.catalogue.objects import Make, policy_maker, refuse_parts
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.server.setup.setup import Setup
from pipistrelle.studies.errors import StudyError
from pipistrelle.traces.workload import Workload

#: start of the texts that stand for objects; the colon makes a scheduler's text count as Python code
_MARK: Final = "object:"


class Objects:
    """The Python objects of a study; the study's description names each by a text.

    The setups that its trials share are kept here, because the same text may name another object in another study.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, object, Make | None]] = {}
        self.cache = SetupCache(given=self.inputs)

    def __bool__(self) -> bool:
        return bool(self._found)

    def __contains__(self, text: object) -> bool:
        return text in self._found

    @property
    def has_schedulers(self) -> bool:
        """Whether any scheduler is an object.

        The code of objects cannot be compared between runs.
        """
        return any(make is not None for _, _, make in self._found.values())

    def named(self, value: Any) -> Any:
        """Return a part of a study's description as text.

        Each Python object in it is replaced by its text.

        Raises:
            PolicyError: an object is neither a workload, nor a machine, nor a scheduler.
        """
        if isinstance(value, Mapping):
            return {name: self.named(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.named(one) for one in value]
        if isinstance(value, Workload | Platform):
            return self._text(value.name, value, None)
        if callable(value) or hasattr(value, "decide"):
            make = policy_maker(value)
            return self._text(make().name, value, make)
        return value

    def _text(self, name: str, thing: object, make: Make | None) -> str:
        for text, (_, known, _) in self._found.items():
            if known is thing:
                return text
        text = first = f"{_MARK}{printable(name)}"
        number = 1
        while text in self._found:
            number += 1
            text = f"{first}#{number}"
        self._found[text] = (printable(name), thing, make)
        return text

    def label(self, text: Any) -> Any:
        """Return the name of a Python object.

        ``text`` stands for this object in the study's description. A value that stands for no object is returned
        unchanged.
        """
        return self._found[text][0] if isinstance(text, str) and text in self._found else text

    @property
    def digests(self) -> dict[str, str]:
        """Return {text: SHA-256 of the contents} of workloads and machines.

        Only those that are Python objects are included.
        """
        found = {}
        for text, (_, thing, _) in self._found.items():
            if isinstance(thing, Workload | Platform):
                found[text] = _digest(thing)
        return found

    def inputs(self, spec: RunSpec) -> Inputs | None:
        """Return the objects that are inputs of a run; None if the run has no such input.

        The returned inputs include the changes that the run's description demands.
        """
        trace = self._found.get(spec.workload[0], ("", None, None))[1] if len(spec.workload) == 1 else None
        machine = self._found.get(spec.platform or "", ("", None, None))[1]
        if trace is None and machine is None:
            return None
        if trace is not None and not isinstance(trace, Workload):
            raise StudyError("this object is not a workload", found=type(trace).__name__)
        if machine is not None and not isinstance(machine, Platform):
            raise StudyError("this object is not a machine", found=type(machine).__name__)
        return Inputs(
            workload=None if trace is None else changed_jobs(spec, trace),
            machine=None if machine is None else changed_machine(spec, machine),
        )

    def setup(self, spec: RunSpec) -> Setup:
        """Return the setup of a trial, as `load_setup` does."""
        return load_setup(spec, cache=self.cache)

    def own_policy(self, spec: RunSpec) -> Policy | None:
        """Return a new policy for a trial whose scheduler is an object.

        Return None for other schedulers.
        """
        return self.policy(spec) if spec.scheduler in self else None

    def policy(self, spec: RunSpec, *, warn: bool = True, polls: bool = True) -> Policy:
        """Return a new policy for a trial, as `RunSpec.make_policy` does.

        Raises:
            PipistrelleError: as from `RunSpec.make_policy`. Also if the scheduler is an object, but the run's
                description gives parts or options for it.
        """
        _, thing, make = self._found.get(str(spec.scheduler), ("", None, None))
        if thing is None:
            return spec.make_policy(warn=warn, polls=polls)
        if make is None:
            raise StudyError("this object is not a scheduler", found=type(thing).__name__)
        default = PolicySpec()
        names = PolicySpec.__struct_fields__
        refuse_parts([name for name in names if getattr(spec, name) != getattr(default, name)], "study")
        if spec.poll is None or not polls:
            return make()
        from pipistrelle.schedulers.runtime.polling import Polling  # most policies do not poll

        return Polling(make(), step_of(spec.poll))


def _digest(thing: Workload | Platform) -> str:
    """Return a digest of all values of a workload or platform."""
    if isinstance(thing, Platform):
        return hashlib.sha256(repr(thing).encode()).hexdigest()
    found = hashlib.sha256()
    for one in dataclasses.fields(thing):
        value = getattr(thing, one.name)
        columns = value.items() if isinstance(value, dict) else [("", value)]
        for name, column in columns:
            found.update(f"{one.name} {name} ".encode())
            found.update(column.tobytes() if isinstance(column, np.ndarray) else repr(column).encode())
    return found.hexdigest()


#: the objects of a study that has none; its trials share the inputs of a process
NO_OBJECTS: Final = Objects()
