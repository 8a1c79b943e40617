# ruff: noqa: RUF001  (odd characters on purpose)
from __future__ import annotations

import pytest

from litebert.base.errors import SettingsError
from litebert.text.sentences import split_sentences


def test_lines_end_sentences_and_empty_ones_vanish() -> None:
    text = "A heading without a stop\n\n  Dr. Smith came. He left! \r\nThird"
    assert split_sentences(text) == [
        "A heading without a stop",
        "Dr. Smith came.",
        "He left!",
        "Third",
    ]


def test_japanese_and_korean() -> None:
    assert split_sentences("猫です。そうですか？はい。", "ja") == [
        "猫です。",
        "そうですか？",
        "はい。",
    ]
    assert split_sentences("나는 고양이다. 그렇습니까? 네.", "ko") == [
        "나는 고양이다.",
        "그렇습니까?",
        "네.",
    ]


@pytest.mark.parametrize("stop", [".", "!", "?", "…", "。", "।", "؟", "።", "᙮", "۔", "‼", "။"])
def test_every_stop_reaches_the_splitter(stop: str) -> None:
    """A paragraph is only taken whole when the splitter would take it whole, too."""
    from sentencex import segment

    text = f"first one{stop} Second one{stop}"
    expected = [part.strip() for part in segment("en", text) if part.strip()]
    assert split_sentences(text) == expected


def test_no_text_no_sentences() -> None:
    assert split_sentences("") == split_sentences(" \n\t\n") == []


@pytest.mark.parametrize("code", ["English", "", "e", "en us", "../en"])
def test_what_is_not_a_language_code_is_refused(code: str) -> None:
    with pytest.raises(SettingsError, match="language code"):
        split_sentences("One. Two.", code)
