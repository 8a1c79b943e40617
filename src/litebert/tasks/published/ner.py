"""Named entities in CoNLL's columns: files train and dev (.txt, .tsv, .conll) of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from litebert.base.errors import FormatError, SettingsError
from litebert.tasks.metrics.entities import split_tag
from litebert.tasks.published.task import PublishedTask, find_file
from litebert.tasks.readers.text_file import Say
from litebert.tasks.source import DataSource
from litebert.tasks.tagged import TaggedExample
from litebert.tasks.tagging import Tagging
from litebert.tasks.task import TaskSettings


class NamedEntities(PublishedTask):
    """CoNLL-2003, WikiANN, and whatever is written like them."""

    def settings(self, train: Sequence[TaggedExample]) -> TaskSettings:
        return Tagging.settings_for(train, Path()).model_copy(update={"name": "ner"})

    def read(
        self, path: Path, split: str, source: DataSource, *, labelled: bool, say: Say
    ) -> list[TaggedExample]:
        file = find_file(path, split)
        examples = Tagging.from_conll(file, source.columns, labelled=labelled, say=say)
        for example in examples:
            for tag in example.tags or ():
                try:
                    split_tag(tag)
                except SettingsError as error:
                    raise FormatError(f"{example.where}: {error}") from None
        return examples
