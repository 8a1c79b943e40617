# ruff: noqa: RUF001  (odd characters on purpose)
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from litebert.base.errors import FileError, FormatError
from litebert.text.normalization import normalize
from litebert.text.tokenizer import SpecialIds, load_tokenizer

from .conftest import ENGLISH, JAPANESE, KINDS, KOREAN, NORMALIZATIONS, SENTENCES, Trained

EVERY = [(kind, normalization) for kind in KINDS for normalization in NORMALIZATIONS]
SPECIAL_TEXT = "[MASK] a [SEP]b <mask> <s></s> <pad> [PAD] <unk> [UNK] [CLS]"


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_ids_are_sentencepieces_own_on_normalized_text(
    trained: Trained, normalization: str
) -> None:
    tokenizer = trained("sentencepiece", normalization)
    model = tokenizer._backend.files["spiece.model"]
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    for sentence in SENTENCES:
        assert tokenizer.encode(sentence) == reference.encode(normalize(sentence, normalization))


@pytest.mark.parametrize("kind", ["sentencepiece", "bpe"])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_decoding_gives_the_cleaned_text(trained: Trained, kind: str, normalization: str) -> None:
    tokenizer = trained(kind, normalization)
    for sentence in SENTENCES:
        ids = tokenizer.encode(sentence)
        assert tokenizer.special.unk not in ids
        assert tokenizer.decode(ids) == tokenizer.normalize(sentence)


def test_hangul_and_voicing_marks_survive_the_default_normalization(trained: Trained) -> None:
    tokenizer = trained("sentencepiece", "multilingual")
    for sentence in KOREAN + JAPANESE:
        assert tokenizer.decode(tokenizer.encode(sentence)) == sentence


def test_wordpiece_decodes_to_words(trained: Trained) -> None:
    tokenizer = trained("wordpiece", "english")
    assert tokenizer.decode(tokenizer.encode("The grey CAT!")) == "the grey cat !"


@pytest.mark.parametrize(("kind", "normalization"), EVERY)
def test_offsets_point_into_the_original(trained: Trained, kind: str, normalization: str) -> None:
    tokenizer = trained(kind, normalization)
    for sentence in [*ENGLISH[:3], *KOREAN[:2], *JAPANESE[:2], "  Café\u00a0 ﬁve  ｶﾞ e\u0301 한\n"]:
        encoding = tokenizer.encode_with_offsets(sentence)
        assert encoding.ids == tokenizer.encode(sentence)
        assert encoding.tokens == [tokenizer.tokens[i] for i in encoding.ids]
        assert encoding.word_starts[0]
        end_before = 0
        for piece, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            assert 0 <= start <= end <= len(sentence)
            covered = sentence[start:end]
            assert covered == covered.strip()
            assert start <= end_before or sentence[end_before:start].isspace()
            end_before = max(end_before, end)
            if kind != "bpe":  # a piece of bytes may be part of a character
                surface = piece.removeprefix("##").removeprefix("▁")
                assert piece in ("[UNK]", "<unk>") or surface in tokenizer.normalize(covered)


def test_offsets_without_the_space_before_the_word(trained: Trained) -> None:
    for kind in KINDS:
        encoding = trained(kind, "none").encode_with_offsets("the cat")
        assert encoding.offsets[0][0] == 0
        assert encoding.offsets[-1][1] == 7
        assert 4 in [start for start, _ in encoding.offsets]
        assert not any(start == 3 and end > 3 for start, end in encoding.offsets)


@pytest.mark.parametrize(("kind", "normalization"), EVERY)
def test_special_names_in_a_text_are_ordinary(
    trained: Trained, kind: str, normalization: str
) -> None:
    tokenizer = trained(kind, normalization)
    special = set(vars(tokenizer.special).values()) - {tokenizer.special.unk}
    batch, _ = tokenizer.encode_batch([SPECIAL_TEXT])
    for ids in (tokenizer.encode(SPECIAL_TEXT), batch.tolist()):
        assert ids
        assert not special & set(ids)


def test_special_ids_and_masks(trained: Trained) -> None:
    for kind, expected in (
        ("sentencepiece", SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4)),
        ("wordpiece", SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4)),
        ("bpe", SpecialIds(cls=0, pad=1, sep=2, unk=3, mask=399)),
    ):
        tokenizer = trained(kind, "multilingual")
        assert tokenizer.special == expected
        assert np.flatnonzero(tokenizer.special_mask).tolist() == sorted(vars(expected).values())
        assert tokenizer.word_starts[tokenizer.special_mask].all()
        assert tokenizer.vocab_size == len(tokenizer.tokens) == tokenizer.word_starts.size


def test_user_defined_symbols_are_text(trained: Trained) -> None:
    tokenizer = trained("sentencepiece", "english")
    assert tokenizer.tokens[5:13] == ["(", ")", '"', "-", ".", "–", "£", "€"]
    assert not tokenizer.special_mask[5:13].any()


@pytest.mark.parametrize(("kind", "normalization"), EVERY)
def test_saved_and_loaded_again(
    trained: Trained, kind: str, normalization: str, tmp_path: Path
) -> None:
    tokenizer = trained(kind, normalization)
    (tmp_path / "config.json").write_text("{}")
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert (again.kind, again.normalization) == (kind, normalization)
    assert again.checksum == tokenizer.checksum
    assert again.tokens == tokenizer.tokens
    assert [again.encode(s) for s in SENTENCES] == [tokenizer.encode(s) for s in SENTENCES]
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again.save(tmp_path)
    assert first == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_the_checksum_knows_the_cleaning_and_the_model(trained: Trained) -> None:
    sums = {trained(kind, normalization).checksum for kind, normalization in EVERY}
    assert len(sums) == len(EVERY)


@pytest.mark.parametrize("kind", KINDS)
def test_single_files_load_with_their_usual_cleaning(
    trained: Trained, kind: str, tmp_path: Path
) -> None:
    usual = {"sentencepiece": "english", "wordpiece": "bert-uncased", "bpe": "none"}[kind]
    trained(kind, "english").save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    name = {"sentencepiece": "spiece.model", "wordpiece": "vocab.txt", "bpe": "vocab.json"}[kind]
    assert load_tokenizer(tmp_path / name).normalization == usual


def test_a_cased_vocabulary_says_so(trained: Trained, tmp_path: Path) -> None:
    trained("wordpiece", "none").save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert load_tokenizer(tmp_path).normalization == "bert-cased"


@pytest.mark.parametrize(("kind", "normalization"), [
    ("sentencepiece", "multilingual"), ("sentencepiece", "lower"), ("sentencepiece", "none"),
    ("bpe", "none"),
])  # fmt: skip
def test_a_lone_tokenizer_json_is_enough(
    trained: Trained, kind: str, normalization: str, tmp_path: Path
) -> None:
    tokenizer = trained(kind, normalization)
    tokenizer.save(tmp_path)
    for path in tmp_path.iterdir():
        if path.name != "tokenizer.json":
            path.unlink()
    again = load_tokenizer(tmp_path)
    assert again.special == tokenizer.special
    assert again.normalization == normalization
    assert [again.encode(s) for s in SENTENCES] == [tokenizer.encode(s) for s in SENTENCES]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file or folder"):
        load_tokenizer(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="no tokenizer here"):
        load_tokenizer(tmp_path)


def test_damaged_settings_are_refused(trained: Trained, tmp_path: Path) -> None:
    trained("wordpiece", "lower").save(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    content = json.loads(config.read_text())
    for change, message in (
        ({"format": 2}, "newer litebert"),
        ({"normalization": "soap"}, "damaged"),
        ({"kind": ["wordpiece"]}, "damaged"),
        ({"kind": "bpe"}, "a wordpiece model"),
    ):
        config.write_text(json.dumps(content | {"litebert": content["litebert"] | change}))
        with pytest.raises(FileError, match=message):
            load_tokenizer(tmp_path)


@pytest.mark.parametrize(("name", "content", "message"), [
    ("vocab.txt", b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n", "no mask token \\(\\[MASK\\]"),
    ("vocab.txt", b"[PAD]\n[PAD]\n", "same token twice"),
    ("vocab.txt", b"[PAD]\n\xff\xfe\n", "not UTF-8 at byte 6"),
    ("vocab.json", b'{"a": 0, "b": 2}', "without a gap"),
    ("vocab.json", b'{"a": 0, "b": "x"}', "not whole numbers"),
    ("vocab.json", b"[1]", "expected an object"),
    ("tokenizer.json", b"{}", "not a tokenizer"),
    ("tokenizer.json", b'{"model": {"type": "WordLevel"}}', "WordLevel"),
    ("tokenizer.json", b'{"model": {"type": "Unigram", "vocab": [[1]]}}', "not a tokenizer"),
    ("tokenizer.json", b'{"model": {"type": "WordPiece", "vocab": 3}}', "not a tokenizer"),
    ("spiece.model", b"", "no pieces"),
    ("notes.md", b"x", "not a tokenizer file"),
])  # fmt: skip
def test_bad_files_are_one_clear_error(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "merges.txt").write_bytes(b"")
    with pytest.raises(FormatError, match=message):
        load_tokenizer(tmp_path / name)


def test_merges_must_fit_their_vocabulary(trained: Trained, tmp_path: Path) -> None:
    trained("bpe", "none").save(tmp_path)
    for line, message in ((b"x yqz\n", "not of tokens"), (b"one\n", "not two tokens")):
        (tmp_path / "merges.txt").write_bytes(b"#version: 0.2\n" + line)
        with pytest.raises(FormatError, match=message):
            load_tokenizer(tmp_path)
