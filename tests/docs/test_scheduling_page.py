"""docs/reference/scheduling.md and placing.md, docs/explanation/determinism.md: parts, presets, event classes."""

from msgspec.structs import fields

from pipistrelle.schedulers.catalogue.names import registered
from pipistrelle.schedulers.catalogue.parts import PARTS
from pipistrelle.schedulers.catalogue.presets import Preset, library
from pipistrelle.schedulers.policy.view import View
from pipistrelle.server.engine import agenda

PAGE = "docs/reference/scheduling.md"


def test_every_part_is_documented(section, table):
    """The tables name every order, backfilling rule and placement."""
    placing = "docs/reference/placing.md"
    for page, heading, axis in (
        (PAGE, "Orders", "order"),
        (PAGE, "Backfilling", "backfill"),
        (placing, "Placements", "placement"),
    ):
        assert {row[0].strip("`") for row in table(section(page, heading))} == set(PARTS[axis])


def test_every_preset_is_documented(section, table):
    """The table of presets has the parts of each, and each is registered."""
    rows = {
        row[0].partition("]")[0].strip("`["): [cell.strip("`") for cell in row[1:]]
        for row in table(section(PAGE, "Schedulers"))
    }

    assert rows == {name: [preset.order, preset.backfill, preset.placement] for name, preset in library().items()}
    assert set(rows) <= set(registered())


def test_every_key_of_a_presets_file_is_documented(section, table):
    """The table of keys has the default of each."""
    rows = {row[0].strip("`"): row[1].strip("`") for row in table(section(PAGE, "A scheduler in a file"))}

    assert rows == {key.encode_name: getattr(Preset(), key.name) or rows[key.encode_name] for key in fields(Preset)}
    assert {rows[f"{axis}-options"] for axis in ("order", "backfill", "placement")} == {"none"}


def test_every_member_of_the_view_is_documented(section, table):
    """The tutorial's table has exactly the attributes and methods of a view."""
    rows = table(section("docs/tutorials/write-your-scheduler.md", "As a Python class"))
    documented = {row[0].strip("`").partition("(")[0] for row in rows}
    methods = {name for name in vars(View) if not name.startswith("_")}
    attributes = {name for name in View.__init__.__code__.co_names if not name.startswith("_")}

    assert methods <= documented
    assert documented - methods <= attributes


def test_the_order_within_an_instant_is_documented(section, table):
    """The classes on the page are the agenda's, in its order."""
    classes = [int(row[0]) for row in table(section("docs/explanation/determinism.md", "Order within an instant"))]

    assert classes == [
        agenda.PHASE,
        agenda.END,
        agenda.FAILURE,
        agenda.REPAIR,
        agenda.MAINTENANCE,
        agenda.PREEMPTION,
        agenda.SWITCH,
        agenda.OUTSIDE,
        agenda.REQUEUE,
        agenda.SUBMISSION,
        agenda.CANCELLATION,
        agenda.CALL,
        agenda.DECISION,
        agenda.READY,
    ]
