"""What the quality report finds in text whose faults are known."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import litebert
from litebert.base.errors import FormatError, SettingsError
from litebert.corpus.inspect import StoreReport
from litebert.corpus.near_duplicates import clusters, signatures
from litebert.corpus.quality import QualityReport, read_drop_list
from litebert.text.language import guess_language, main_script

WORDS = [f"{a}{b}{c}o" for a in "bdfgk" for b in "aeiou" for c in "lmnprstvzjhdgkxw"]
LINE = f"subscribe to our {WORDS[1]} {WORDS[2]} {WORDS[3]} now ."


def sentence(source: random.Random, count: int = 12) -> str:
    return " ".join(source.choices(WORDS, k=count)) + " ."


def documents() -> dict[str, str]:
    source = random.Random(1)
    plain = [[sentence(source) for _ in range(20)] for _ in range(40)]
    texts = {f"plain {n}": "\n".join(lines) for n, lines in enumerate(plain)}
    near = list(plain[3])
    near[7] = f"{WORDS[0]} {near[7]}"
    texts["near_duplicate"] = "\n".join(near)
    texts["duplicate"] = texts["plain 5"]
    texts |= {f"ad {n}": f"{LINE}\n{sentence(source, 3)}" for n in range(12)}
    texts["repetitive"] = "\n".join([sentence(source)] * 9)
    noise = [f"{word} == == // ** {word} ## -- << ." for word in WORDS[:4]]
    texts["symbols"] = "\n".join(noise)
    return texts


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quality")
    rows = [json.dumps({"text": text}) for text in documents().values()]
    (folder / "text.jsonl").write_text("\n".join(rows), encoding="utf-8")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*special, *WORDS, *"=/*#-<%.", "subscribe", "to", "our", "now"]
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    litebert.prepare([str(folder / "text.jsonl")], folder / "tokenizer", folder / "store",
                     num_workers=1, held_out=0.0)  # fmt: skip
    return folder


def report(store: Path, drop: Path | None = None) -> QualityReport:
    found = litebert.inspect(store, quality=True, drop=drop)
    assert isinstance(found, StoreReport)
    assert found.quality is not None
    return found.quality


def test_each_fault_is_found_once(corpus: Path) -> None:
    found = report(corpus / "store")
    counts = {name: outliers.documents for name, outliers in found.outliers.items()}
    assert counts["duplicate"] == counts["near_duplicate"] == 1
    assert counts["boilerplate"] == 12
    assert counts["repetitive"] == 1
    assert counts["symbols"] == 1
    assert [line.documents for line in found.boilerplate] == [12]
    assert found.boilerplate[0].text.startswith("subscribe to our")


def test_what_is_dropped_is_gone(corpus: Path, tmp_path: Path) -> None:
    drop, out = tmp_path / "drop.json", tmp_path / "store"
    listed = {key for keys in report(corpus / "store", drop).keys.values() for key in keys}
    assert read_drop_list(drop) == {int(key, 16) for key in listed}
    made = litebert.prepare([str(corpus / "text.jsonl")], corpus / "tokenizer", out,
                            num_workers=1, held_out=0.0, drop=drop)  # fmt: skip
    assert made.store.total.documents == len(documents()) - len(listed)
    assert made.store.total.skipped == {"listed in --drop": len(listed)}
    again = report(out)
    dropped = ("near_duplicate", "boilerplate", "repetitive", "symbols")
    assert not any(again.outliers[name].documents for name in dropped)


def test_bad_lists_are_refused(corpus: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"symbols": ["no number"]}', encoding="utf-8")
    with pytest.raises(FormatError, match="no list of documents"):
        read_drop_list(bad)
    with pytest.raises(SettingsError, match="--quality"):
        litebert.inspect(corpus / "store", drop=bad)


def test_agreeing_bins_estimate_what_is_shared() -> None:
    source = np.random.default_rng(0)
    first = source.integers(8000, size=3000)
    for changed in (0, 300, 1500):
        other = first.copy()
        other[:changed] = source.integers(8000, size=changed)
        found = signatures(np.concatenate([first, other]), np.array([3000, 3000]))
        agree = float((found[0] == found[1]).mean())
        shared = (3000 - changed) / (3000 + changed)
        assert abs(agree - shared) < 0.2  # 64 bins: three deviations
        if changed != 300:  # which is near the threshold
            assert clusters(found).tolist() == ([0, 1] if changed else [0, 0])


@pytest.mark.parametrize(
    ("text", "language", "script"),
    [
        ("The ferry was late, but the crossing was calm and it was on time.", "en", "Latin"),
        ("Die Fähre war spät, aber das Meer ist ruhig und der Wind von Westen.", "de", "Latin"),
        ("배가 늦었지만 바다는 잔잔했다.", "ko", "Hangul"),
        ("船は遅れたが、海は静かだった。", "ja", "Kana"),
        ("Паром опоздал, но море было спокойным и не было ветра.", "ru", "Cyrillic"),
        ("qwx zzyk 17 = 4", "unclear", "Latin"),
        ("12 + 3", "unclear", "none"),
    ],
)
def test_languages(text: str, language: str, script: str) -> None:
    assert (guess_language(text), main_script(text)) == (language, script)
