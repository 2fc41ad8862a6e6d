"""A job's life as a table; docs/design.md draws it."""

from typing import Final, Literal

from pipistrelle.protocol.fields import JobState

State = Literal["SUBMITTED", "RUNNING", "REJECTED"] | JobState
Step = Literal["execute", "reject", "finish", "fail", "reach_walltime", "kill", "lose_nodes"]

#: {state: {step: next state}}; a state without steps is final.
LIFE: Final[dict[State, dict[Step, State]]] = {
    "SUBMITTED": {"execute": "RUNNING", "reject": "REJECTED"},
    "RUNNING": {
        "finish": "COMPLETED_SUCCESSFULLY",
        "fail": "COMPLETED_FAILED",
        "reach_walltime": "COMPLETED_WALLTIME_REACHED",
        "kill": "COMPLETED_KILLED",
        "lose_nodes": "COMPLETED_FAILED",
    },
    "REJECTED": {},
    "COMPLETED_SUCCESSFULLY": {},
    "COMPLETED_FAILED": {},
    "COMPLETED_WALLTIME_REACHED": {},
    "COMPLETED_KILLED": {},
}


def next_state(state: State, step: Step, job_id: str) -> State:
    """Return the state after a step.

    Raises
    ------
    RuntimeError
        when the table has no such step: the engine asked for it without looking, a bug of ours.
    """
    try:
        return LIFE[state][step]
    except KeyError:
        raise RuntimeError(f"job {job_id}: '{step}' is not possible in state {state}") from None
