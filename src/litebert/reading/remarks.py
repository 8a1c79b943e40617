"""What a user should know about raw text before hours go into it: how it is read, and markup in it.

Looks at the beginnings of a few files only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from litebert.reading.chunks import ReadSettings, split_chunks
from litebert.reading.markup import count_markup
from litebert.reading.records import Document, Skipped, read_documents
from litebert.reading.sources import Source

FILES, BYTES, DOCUMENTS = 8, 2**20, 100  # that are looked at, and of each


def remarks_on(sources: Sequence[Source], settings: ReadSettings) -> Iterator[str]:
    """Sentences about the sources; pipes and datasets are not looked into."""
    wiki = [source.name for source in sources if source.format == "wikiextractor"]
    if wiki:
        more = f" and {len(wiki) - 1:,} more" if len(wiki) > 1 else ""
        yield (
            f"{wiki[0]}{more}: WikiExtractor's format; its tags, its titles and the markup that it "
            "left are taken out"
        )
    files = [s for s in sources if s.size is not None and s.format != "wikiextractor"]
    headless = [source.name for source in files if _is_headless(source, settings)]
    if headless:
        yield f"{headless[0]}: no header, so its first line is text and columns have numbers from 0"
    if not settings.strip_markup:
        yield from _markup(files[:: -(-len(files) // FILES) or 1], settings)


def _is_headless(source: Source, settings: ReadSettings) -> bool:
    if source.format not in ("csv", "tsv") or not settings.field.isdigit():
        return False
    first = next(split_chunks(source, settings, 1), None)
    return first is not None and first.first_byte == 0


def _markup(files: Sequence[Source], settings: ReadSettings) -> Iterator[str]:
    lenient = settings.model_copy(update={"on_error": "skip"})
    found = count_markup(
        one.text if one.text is not None else "\n".join(one.sentences or ())
        for source in files
        for one in islice(_beginning(source, lenient), DOCUMENTS)
    )
    if found.marked and found.is_much:
        yield (
            f"warning: {found.marked:,} of the first {found.texts:,} documents hold wiki or HTML "
            f"markup ({found.listed()}); --strip-markup takes it out"
        )


def _beginning(source: Source, settings: ReadSettings) -> Iterator[Document]:
    for chunk in islice(split_chunks(source, settings, BYTES), 1):
        yield from read_documents(chunk, settings, Skipped())
