"""Write docs/reference/api.md from the public names: python docs/make_api.py > docs/reference/api.md"""

import inspect
import sys
from typing import Any

import pipistrelle

#: {heading: (purpose, names)}
SECTIONS: dict[str, tuple[str, str]] = {
    "Run": (
        "Simulate, and read the results.",
        "run open Run Plots Table Summary RunKeywords",
    ),
    "Compare and explain": (
        "[Compare](../how-to/compare.md) runs of the same jobs, and [explain](../how-to/explain.md) waits.",
        "compare Comparison explain JobExplanation",
    ),
    "Studies": (
        "Many runs with replicas and confidence intervals; [Studies](../how-to/studies.md).",
        "study open_study Study StudyResults Picture",
    ),
    "Workloads": (
        "Read, generate and change logs; [Workloads](workloads.md), [Workload tools](../how-to/workload-tools.md).",
        "Workload load_workload save_workload generate_workload transform_workload clean_workload describe_workload "
        "offered_load",
    ),
    "Machines": (
        "Descriptions of machines and of their nodes; [Platforms](platforms.md).",
        "Platform Pool load_platform parse_platform homogeneous describe_platform Machine NodeTable node_order "
        "load_node_rows with_node_rows",
    ),
    "Schedulers": (
        "Your own scheduler, or one made of parts; [Write your scheduler](../tutorials/write-your-scheduler.md).",
        "Scheduler View Job earliest_start Fcfs Sjf Easy LowestIds Window NodeSet Stateless make_scheduler compose "
        "ComposedPolicy MauiPolicy read_maui_config",
    ),
    "Live clusters": (
        "Expected starts of the jobs that wait; [Forecast](../how-to/forecast.md).",
        "forecast Forecast",
    ),
    "Names and errors": (
        "What is bundled, the base class of all errors that you can correct, and warnings about doubtful input.",
        "bundled PipistrelleError PipistrelleWarning",
    ),
    "Failures": (
        "Outages without a run; [Failures](../how-to/failures.md). A run takes failures as options.",
        "failure_plan parse_durations",
    ),
    "Descriptions, states and the kernel": (
        "For programs that need more than `run`: descriptions as values, saved states, the compiled engine.",
        "RunSpec load_setup run_spec RunOptions Pause state_to_json state_from_json run_kernel why_not_kernel",
    ),
}
HEAD = """# Python API

For anyone who uses Pipistrelle from Python or in a notebook. `import pipistrelle as pp` offers all these names, typed.
Other names may change without notice; see [Stability](stability.md).

```python
import pipistrelle as pp

fcfs = pp.run("demo", scheduler="fcfs")
easy = pp.run("demo", scheduler="easy", order="sjf")
print(f"{fcfs.summary.mean_wait:,.0f} s, {easy.summary.mean_wait:,.0f} s")
print(pp.compare(fcfs, easy).jobs, len(easy.jobs.to_pandas()))
```

<!-- output -->
```text
1,955,576 s, 28,773 s
5000 5000
```

`run` takes the options of [`pipistrelle run`](cli.md) as keywords, with underscores:
`run("demo", failures="exponential,mtbf=1y", repair="4h")`. A workload, a platform and a scheduler may also be objects.

Tables need pyarrow, plots need matplotlib, and `to_pandas` and `to_polars` need those packages.
`pip install 'pipistrelle[notebook]'` installs all four; `pipistrelle[all]` installs every optional package.
[Compare schedulers in a notebook](../tutorials/compare-schedulers.md) is a tutorial.

Each line is the start of a docstring. The whole text has parameters, units and errors: `help(pp.run)` shows it.

<!-- written by docs/make_api.py -->
"""


def first_paragraph(thing: Any) -> str:
    """Return a docstring's first paragraph on one line, escaped for a table cell."""
    text = inspect.getdoc(thing) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def members(thing: type) -> list[tuple[str, str]]:
    """Return the public members of a class: (name, first paragraph of the docstring).

    Only methods and properties that the layer ``api`` defines are listed.
    """
    if not thing.__module__.startswith("pipistrelle.api."):
        return []
    found = []
    for name, member in vars(thing).items():
        if (
            not name.startswith("_")
            and (text := first_paragraph(getattr(thing, name)))
            and callable_or_property(member)
        ):
            found.append((f"{name}()" if is_method(member) else name, text))
    return found


def is_method(member: object) -> bool:
    """Return whether a member of a class is a method."""
    return inspect.isfunction(member) or isinstance(member, classmethod)


def callable_or_property(member: object) -> bool:
    """Return whether a member of a class is a method or a property."""
    return is_method(member) or isinstance(member, property) or hasattr(member, "attrname")


def page() -> str:
    """Return the text of the API page."""
    parts = [HEAD]
    for heading, (purpose, names) in SECTIONS.items():
        parts.append(f"\n## {heading}\n\n{purpose}\n\n| name | what it is |\n|---|---|\n")
        for name in names.split():
            thing = getattr(pipistrelle, name)
            parts.append(f"| `{name}` | {first_paragraph(thing)} |\n")
            if isinstance(thing, type):
                parts += [f"| `{name}.{member}` | {text} |\n" for member, text in members(thing)]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
