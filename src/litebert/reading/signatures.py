"""What a file is when it is not text: known first bytes, so that an error can name it."""

from __future__ import annotations

BOM = b"\xef\xbb\xbf"  # UTF-8's, which Windows programs write and everyone else ignores

_SIGNATURES = (
    (b"\x1f\x8b", "gzip data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"BZh", "bzip2 data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"PK\x03\x04", "a ZIP archive (or a .docx, .xlsx or .epub file)"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"%PDF-", "a PDF document"),
    (b"{\\rtf", "a Rich Text document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Microsoft Office document"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1\0", "an Arrow file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe\0\0", "UTF-32 text"),
    (b"\0\0\xfe\xff", "UTF-32 text"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


def looks_like(head: bytes) -> str:
    """What the first bytes of a file say it is; an empty answer if they say nothing."""
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return "zstd's skippable data"
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    return ""


def not_text(head: bytes) -> str:
    """Why a file that starts like this cannot be UTF-8 text; an empty answer if it can."""
    kind = looks_like(head)
    if kind.endswith(" text"):
        encoding = kind.removesuffix(" text")
        return f"{kind}, not UTF-8; convert it with `iconv -f {encoding} -t UTF-8`"
    if kind:
        return f"not text: it looks like {kind}; give it the right extension, or leave it out"
    if (place := head.find(b"\0")) >= 0:
        return f"not text: a NUL byte at byte {place:,} says binary data; leave it out"
    return ""
