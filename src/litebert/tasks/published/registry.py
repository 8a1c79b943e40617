"""Published tasks, by name."""

from __future__ import annotations

from litebert.tasks.published.glue import Glue
from litebert.tasks.published.glue_tasks import GLUE
from litebert.tasks.published.ner import NamedEntities
from litebert.tasks.published.race import Race
from litebert.tasks.published.squad import Squad
from litebert.tasks.published.task import PublishedTask

PUBLISHED: dict[str, PublishedTask] = {
    **{name: Glue(name) for name in GLUE},
    "squad-1.1": Squad("1.1"),
    "squad-2.0": Squad("2.0"),
    "race": Race(),
    "ner": NamedEntities(),
}
