"""Why a job of a run waited."""
