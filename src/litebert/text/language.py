"""Which script and language a text is in, roughly: letters by script, then the commonest words.

Enough to say that a corpus is mixed, not to tell Danish from Norwegian. A text is in the language
whose function words it has most of; one with too few of any is "unclear".
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

FEWEST_WORDS = 0.04  # fraction of function words, below which a language is unclear
SCRIPTS = {
    "LATIN": "Latin", "CYRILLIC": "Cyrillic", "GREEK": "Greek", "ARABIC": "Arabic",
    "HEBREW": "Hebrew", "DEVANAGARI": "Devanagari", "HANGUL": "Hangul", "HIRAGANA": "Kana",
    "KATAKANA": "Kana", "CJK": "Han", "THAI": "Thai",
}  # fmt: skip
ONE_LANGUAGE = {
    "Hangul": "ko", "Kana": "ja", "Han": "zh", "Greek": "el", "Hebrew": "he", "Thai": "th",
}  # fmt: skip
FUNCTION_WORDS = {
    "en": "the of and to in is that was it for on with as are this be by not you from have",
    "de": "der die und das ist nicht ein eine den von mit sich auf dem für auch des im wird",
    "fr": "le la les des et est une dans que pour qui pas sur avec ce au il du sont plus",
    "es": "el los las de que y en un una por con para se no su es como del al lo más",
    "it": "il di che e la un una per non con del della gli dei nel sono è si da più",
    "pt": "o de que e do da em um uma para com não os as por se na no mais ao é",
    "nl": "de het een van en in is dat op te met voor niet zijn aan er ook door als",
    "sv": "och att det som en på är av för med den till inte om ett har jag var",
    "ru": "и в не на что по как это из к но за от для так он же бы",
    "pl": "i w na nie się z do że jest to jak o po za od przez ale był",
}
_WORD_LISTS = {name: frozenset(words.split()) for name, words in FUNCTION_WORDS.items()}
_WORDS = re.compile(r"[^\W\d_]+")


def main_script(text: str) -> str:
    """The script that most letters are of; Kana wins over the Han beside it."""
    counts = Counter(_script(letter) for letter in text if letter.isalpha())
    if counts["Kana"] > 0.1 * counts["Han"] > 0:
        return "Kana"
    return counts.most_common(1)[0][0] if counts else "none"


def guess_language(text: str) -> str:
    """A language's code, or "unclear"."""
    script = main_script(text)
    if script in ONE_LANGUAGE:
        return ONE_LANGUAGE[script]
    words = _WORDS.findall(text.lower())
    found = {name: sum(word in known for word in words) for name, known in _WORD_LISTS.items()}
    best = max(found, key=lambda name: found[name])
    return best if found[best] > FEWEST_WORDS * len(words) else "unclear"


def _script(letter: str) -> str:
    return SCRIPTS.get(unicodedata.name(letter, "").partition(" ")[0], "other")
