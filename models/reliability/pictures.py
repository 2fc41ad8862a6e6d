"""Draw a plan of partitions: blocking, required reliability, waits and survival."""

from typing import TYPE_CHECKING, Any

from pipistrelle.models.workloads.pictures import drawn
from pipistrelle.protocol.base.errors import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def svg(plan: dict[str, Any]) -> str:
    """Return a picture of a plan by `make_plan`, as SVG text.

    It has six parts:

    - the nodes that each class needs, by blocking probability (figure 4.2 of Umamaheshwaran's thesis);
    - the node MTTF that each class needs (table 4.3);
    - the blocking of each class: linear, exact with own nodes, and exact on the shared machine;
    - the exact probability that a job waits (figure 4.5);
    - the MTTF of each partition, by number of nodes (table 4.6);
    - the survival of jobs without and with partitions (table 4.8).
    """

    def draw(figure: "Figure") -> None:
        title = f"{printable(str(plan['name']))}: {plan['units']:,} units, offered load {plan['load']:.4f}"
        figure.suptitle(title if plan["stable"] else f"{title} (unstable)", parse_math=False)
        for number, panel in enumerate((_capacity, _required, _blocking, _queueing, _partitions, _lasting), 1):
            panel(figure.add_subplot(3, 2, number), plan)

    return drawn(draw, 11, 11)


def _capacity(axes: "Axes", plan: dict[str, Any]) -> None:
    levels = sorted(plan["capacity"], key=lambda level: float(level["blocking"]))
    for at, name in enumerate(one["class"] for one in plan["classes"]):
        axes.plot(
            [level["blocking"] for level in levels],
            [level["types_1_4"][at] for level in levels],
            marker="o",
            label=name,
        )
    axes.plot([level["blocking"] for level in levels], [level["total"] for level in levels], "k--", label="all")
    axes.set_title("units by chance of blocking (types I and IV)", parse_math=False)
    axes.set_xlabel("chance of blocking")
    axes.set_ylabel("units")
    _log(axes, [share for level in levels for share in level["types_1_4"]])
    axes.legend(fontsize=6)


def _required(axes: "Axes", plan: dict[str, Any]) -> None:
    chances = plan["required"]["probabilities"]
    for one in plan["required"]["classes"]:
        axes.plot(chances, one["mttf"], marker=".", label=one["class"])
    if plan["mttf"] is not None:
        axes.axhline(plan["mttf"], color="black", linestyle="--", linewidth=0.8)
    axes.set_title("mean time to failure (h) that a node must have", parse_math=False)
    axes.set_xlabel("chance that the job lasts")
    _log(axes, [hours for one in plan["required"]["classes"] for hours in one["mttf"]])


def _blocking(axes: "Axes", plan: dict[str, Any]) -> None:
    rows = plan["blocking"]
    places = range(len(rows))
    axes.bar([at - 0.27 for at in places], [row["levels"][0]["linear"] for row in rows], 0.27, label="linear form")
    axes.bar(list(places), [row["levels"][0]["exact"] for row in rows], 0.27, label="Erlang's B")
    axes.bar([at + 0.27 for at in places], [row["shared"] or 0.0 for row in rows], 0.27, label="all share the machine")
    axes.set_xticks(list(places), [row["class"] for row in rows], rotation=45)
    axes.set_title(f"chance of blocking, nodes sized for {rows[0]['levels'][0]['blocking']:g}", parse_math=False)
    axes.legend(fontsize=6)


def _partitions(axes: "Axes", plan: dict[str, Any]) -> None:
    first = plan["partitions"][0]
    left = 0
    for part in first["partitions"]:
        height = part["mttf"] or 1.0
        axes.bar(left, height, part["size"], align="edge", edgecolor="white", color="tab:blue")
        axes.text(
            left + part["size"] / 2, height / 2, part["class"], ha="center", va="center", rotation=90, color="white"
        )
        left += part["size"]
    if first["extra"]:
        axes.bar(left, 1.0, first["extra"], align="edge", color="tab:gray")
    known = plan["mttf"] is not None
    axes.set_title(
        "partitions by their class: " + ("mean time to failure (h)" if known else "units") + ", most reliable first",
        parse_math=False,
    )
    axes.set_xlabel("units")


def _queueing(axes: "Axes", plan: dict[str, Any]) -> None:
    for one in plan["classes"]:
        rows = [row for row in plan["queueing"] if row["class"] == one["class"] and row["exact"] is not None]
        chances = [row["blocking"] for row in rows]
        axes.plot(chances, [row["exact"]["chance"] for row in rows], marker="o", label=one["class"])
    axes.set_title("chance to wait (Erlang's C), where the queue has an end", parse_math=False)
    axes.set_xlabel("chance of blocking that the nodes are for")


def _lasting(axes: "Axes", plan: dict[str, Any]) -> None:
    rows = [row for row in plan["served"]["classes"] if "ratio" in row]
    places = range(len(rows))
    axes.bar([at - 0.2 for at in places], [row["reliability_before"] for row in rows], 0.4, label="any nodes")
    axes.bar([at + 0.2 for at in places], [row["reliability_after"] for row in rows], 0.4, label="partitions")
    axes.set_xticks(list(places), [row["class"] for row in rows], rotation=45)
    axes.set_title("chance that a job lasts", parse_math=False)
    if rows:
        axes.legend(fontsize=6)


def _log(axes: "Axes", values: list[float]) -> None:
    if any(value > 0 for value in values):
        axes.set_yscale("log")
