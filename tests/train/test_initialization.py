"""Initialization from the corpus: word vectors against a literal count; which values differ."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

import litebert
from litebert.base.errors import SettingsError
from litebert.base.randomness import Purpose, random_bits, uniform
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.train.build import build_learner, fit_to_corpus
from litebert.train.initialization import word_vectors as vectors_module
from litebert.train.initialization.attention import GAIN, NEIGHBOUR_GAIN, OFFSETS
from litebert.train.initialization.corpus import initialize_from_corpus
from litebert.train.initialization.tables import (
    FASTEST,
    ROW_LENGTH,
    SEGMENT_LENGTH,
    SPREAD,
    EmbeddingColumns,
)
from litebert.train.initialization.word_vectors import word_vectors
from litebert.train.pretrain import pretrain
from tests.corpus.stores import (
    make_documents,
    make_store,
    write_bytes,
    write_pieces,
    write_wordpiece,
)

Documents = Sequence[Sequence[str]]
WRITERS: dict[str, Callable[[Path], Path]] = {
    "pieces": write_pieces, "wordpiece": write_wordpiece, "bytes": write_bytes,
}  # fmt: skip
DOCUMENTS = make_documents(1, 40, (1, 8), (1, 8))
SMALL = [
    "model.hidden_size=16", "model.num_hidden_layers=2", "model.num_attention_heads=2",
    "model.intermediate_size=20", "model.hidden_dropout_prob=0", "stages=[]",
    "model.attention_probs_dropout_prob=0", "data.max_length=32", "data.batch_size=4",
    "data.dupe_factor=0", "evaluation.sequences=4", "precision=fp32", "budget=1steps",
    "initialization=corpus",
]  # fmt: skip
FAMILIES: dict[str, tuple[str, str, list[str]]] = {
    "albert": ("albert-base", "pieces", ["model.embedding_size=8"]),
    "albert-unshared": ("albert-base", "pieces", ["model.embedding_size=8", "model.sharing=none"]),
    "bert": ("bert-base", "wordpiece", ["model.embedding_size=16"]),
    "roberta": ("roberta-base", "bytes", ["model.embedding_size=16"]),
    "spanbert": ("spanbert-base", "wordpiece", ["model.embedding_size=16"]),
    "electra": ("electra-small", "wordpiece", [
        "model.embedding_size=8", "generator.hidden_size=4", "generator.intermediate_size=8",
    ]),
}  # fmt: skip


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    """The same text in three kinds of pieces, some of it held out."""
    folder = tmp_path_factory.mktemp("stores")
    return {
        kind: make_store(folder / kind / "store", DOCUMENTS, write(folder / kind / "tokenizer"),
                         held_out=0.2)
        for kind, write in WRITERS.items()
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _few_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decomposition of 1024 contexts takes a second; most tests ask about other things."""
    monkeypatch.setattr(vectors_module, "CONTEXTS", 64)


# Word vectors.


def training_ids(store: Store) -> list[list[int]]:
    """The pieces of every document that is not held out, read from the shards one by one."""
    texts = []
    for number in range(len(store.paths)):
        shard = store.shard(number)
        edges = shard.sentences[shard.documents].tolist()
        for key, start, end in zip(shard.keys, edges, edges[1:], strict=False):
            if float(uniform(random_bits(Purpose.HELD_OUT, key))) >= store.info.held_out:
                texts.append(shard.ids[start:end].tolist())
    return texts


def literal_information(texts: list[list[int]], vocabulary: int, contexts: int) -> Tensor:
    """max(0, log p(piece, context) / (p(piece) p'(context))), p' smoothed by a power of 0.75."""
    counts = np.bincount([piece for text in texts for piece in text], minlength=vocabulary)
    frequent = sorted(range(vocabulary), key=lambda piece: (-counts[piece], piece))[:contexts]
    column = {piece: number for number, piece in enumerate(frequent)}
    near: dict[tuple[int, int], float] = defaultdict(float)
    for text in texts:
        for here, piece in enumerate(text):
            for there in range(max(here - 5, 0), min(here + 6, len(text))):
                if there != here and text[there] in column:
                    near[piece, column[text[there]]] += 1 / abs(there - here)
    total = sum(near.values())
    rows, columns = np.zeros(vocabulary), np.zeros(contexts)
    for (piece, context), count in near.items():
        rows[piece] += count
        columns[context] += count
    smooth = columns**0.75 / (columns**0.75).sum()
    information = torch.zeros(vocabulary, contexts, dtype=torch.float64)
    for (piece, context), count in near.items():
        ratio = (count / total) / (rows[piece] / total * smooth[context])
        information[piece, context] = max(0.0, math.log(ratio))
    return information


def literal_gram(information: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Inner products of U_k S_k^(1/2), which no sign or rotation changes; and all of S."""
    left, strength, _ = torch.linalg.svd(information, full_matrices=False)
    chosen = left[:, :size]
    return chosen * strength[:size] @ chosen.T, strength


def assert_same_products(found: Tensor, gram: Tensor) -> None:
    mine = found.double() @ found.double().T
    assert (mine - gram).abs().max() < 2e-3 * gram.abs().max()


@pytest.mark.parametrize("size", [4, 16])
def test_vectors_are_those_of_a_singular_value_decomposition(
    size: int, stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "CONTEXTS", 1024)  # more than there are pieces
    store = stores["bytes"]
    vocabulary = store.info.vocab_size
    information = literal_information(training_ids(store), vocabulary, vocabulary)
    gram, strength = literal_gram(information, size)
    assert strength[size - 1] > 1.002 * strength[size], "the literal answer is not unique"
    found = word_vectors(store, token_counts(store), size)
    assert found.shape == (vocabulary, size)
    assert found.dtype == torch.float32
    assert_same_products(found, gram)


def test_only_the_most_frequent_pieces_are_contexts(
    stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "CONTEXTS", 30)
    store = stores["wordpiece"]
    texts = training_ids(store)
    information = literal_information(texts, store.info.vocab_size, 30)
    used = information.abs().sum(1) > 0
    gram, strength = literal_gram(information[used], 12)
    assert strength[11] > 1.002 * strength[12]
    found = word_vectors(store, token_counts(store), 12)
    assert not found[~used].any()
    assert_same_products(found[used], gram)


def test_more_columns_than_the_text_has_to_say(tmp_path: Path) -> None:
    """Past the rank there is nothing to add: no noise is blown up to the size of the rest."""
    documents = [[f"s{one} s{two}"] for one in range(12) for two in range(20, 32)]
    store = make_store(tmp_path / "store", documents, write_wordpiece(tmp_path / "tokenizer"))
    information = literal_information(training_ids(store), store.info.vocab_size, 64)
    used = information.abs().sum(1) > 0
    gram, strength = literal_gram(information[used], 16)
    assert int((strength > 1e-9 * strength[0]).sum()) == 2
    found = word_vectors(store, token_counts(store), 16)
    assert found.isfinite().all()
    assert_same_products(found[used], gram)


def test_more_columns_than_contexts(
    stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "CONTEXTS", 10)
    found = word_vectors(stores["bytes"], token_counts(stores["bytes"]), 24)
    assert found.shape[1] == 24
    assert not found[:, 10:].any()
    assert found[:, :10].any()


def test_pairs_never_cross_documents(tmp_path: Path) -> None:
    """Documents of one piece each have no pair at all."""
    documents = [[f"s{number % 50}"] for number in range(200)]
    store = make_store(tmp_path / "store", documents, write_wordpiece(tmp_path / "tokenizer"))
    assert not word_vectors(store, token_counts(store), 8).any()


def test_pairs_cross_the_sentences_of_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "CONTEXTS", 100)
    documents = [[f"s{number}", f"s{number + 1}"] for number in range(0, 100, 2)]
    store = make_store(tmp_path / "store", documents, write_wordpiece(tmp_path / "tokenizer"))
    found = word_vectors(store, token_counts(store), 100)
    gram = found @ found.T
    pieces = [store.tokenizer.encode(f"s{number}")[0] for number in range(100)]
    assert (gram[pieces, pieces] > 0.1).all()


def test_held_out_documents_are_not_looked_at(stores: dict[str, Store]) -> None:
    store = stores["wordpiece"]
    seen = {piece for text in training_ids(store) for piece in text}
    found = word_vectors(store, token_counts(store), 16)
    known = set(torch.nonzero(found.abs().sum(1)).flatten().tolist())
    assert known <= seen
    everything = {piece for document in DOCUMENTS for sentence in document
                  for piece in store.tokenizer.encode(sentence)}  # fmt: skip
    assert everything - seen


def test_vectors_are_the_same_every_time(stores: dict[str, Store]) -> None:
    store = stores["wordpiece"]
    counts = token_counts(store)
    torch.manual_seed(1)
    one = word_vectors(store, counts, 16)
    torch.manual_seed(2)
    assert torch.equal(one, word_vectors(Store(store.folders), counts, 16))


# The start of a learner.


def fitted(family: str, stores: dict[str, Store]) -> tuple[Preset, Store]:
    name, kind, overrides = FAMILIES[family]
    store = stores[kind]
    return fit_to_corpus(load_preset(name, [*SMALL, *overrides]), store), store


def fresh(preset: Preset) -> Learner:
    return build_learner(preset, torch.device("cpu"), (None, None), pytest.fail)


def started(family: str, stores: dict[str, Store]) -> tuple[Learner, Learner, Store]:
    """A learner as the paper has it, and one initialized from the corpus."""
    preset, store = fitted(family, stores)
    plain, counted = fresh(preset), fresh(preset)
    initialize_from_corpus(counted, store, token_counts(store))
    return plain, counted, store


def is_counted(name: str, learner: Learner) -> bool:
    """Whether a tensor, by its name, has a start of its own."""
    owner, _, tail = name.partition(".")
    model = learner.get_submodule(owner)
    assert isinstance(model, Model)
    if tail == "heads.masked_lm.dense.weight":
        return model.encoder.projection is not None  # else E = H, and there is no way back
    if tail == "encoder.embeddings.segment.weight":
        return model.config.type_vocab_size > 1  # else there is nothing to tell apart
    return (tail.startswith("encoder.attentions.") and tail.endswith(
        ("query_key_value.weight", "output.weight")
    )) or tail in (
        "encoder.embeddings.token.weight", "encoder.embeddings.position.weight",
        "encoder.projection.weight", "heads.masked_lm.bias",
        "heads.span_boundary.bias",
    )  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_everything_else_is_as_created(family: str, stores: dict[str, Store]) -> None:
    plain, counted, _ = started(family, stores)
    changed = 0
    for name, tensor in counted.named_parameters():
        before = plain.get_parameter(name)
        assert tensor.shape == before.shape
        assert tensor.isfinite().all()
        assert tensor.dtype == torch.float32
        if is_counted(name, counted):
            assert not torch.equal(tensor, before), f"{name} is as before"
            changed += 1
        else:
            assert torch.equal(tensor, before), f"{name} has changed"
    assert changed >= 4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_token_table_is_the_word_vectors_centred_and_of_one_length(
    family: str, stores: dict[str, Store]
) -> None:
    plain, counted, store = started(family, stores)
    columns = EmbeddingColumns(counted.model.config.embedding_size)
    found = word_vectors(store, token_counts(store), columns.tokens)
    known = found.abs().sum(1) > 0
    table = counted.model.encoder.embeddings.token.weight
    centred = found[known] - found[known].mean(0)
    wanted = centred / centred.square().sum(1, keepdim=True).sqrt() * ROW_LENGTH
    torch.testing.assert_close(table[known][:, : columns.tokens], wanted, rtol=1e-4, atol=1e-5)
    assert not table[known][:, columns.tokens :].any(), "these columns are not the words'"
    before = plain.model.encoder.embeddings.token.weight
    assert torch.equal(table[~known], before[~known])
    special = list(store.tokenizer.special.__dict__.values())
    assert not known[special].any()


@pytest.mark.parametrize("family", FAMILIES)
def test_positions_are_waves(family: str, stores: dict[str, Store]) -> None:
    _, counted, _ = started(family, stores)
    table = counted.model.encoder.embeddings.position.weight.double()
    places, width = table.shape
    waves = width // 8
    for place in (0, 1, 17, places - 1):
        for wave in range(waves):
            angle = place * FASTEST * ((wave + 1) / waves) ** SPREAD
            wanted = torch.tensor([math.sin(angle), math.cos(angle)], dtype=torch.float64)
            first = width - 2 * waves + 2 * wave
            found = table[place, first : first + 2]
            torch.testing.assert_close(found, wanted * ROW_LENGTH / waves**0.5, rtol=0, atol=2e-4)
    torch.testing.assert_close(table.norm(dim=1), torch.full_like(table[:, 0], ROW_LENGTH))
    assert not table[:, : width - 2 * waves].any()


@pytest.mark.parametrize("size", [64, 128])
def test_no_place_is_like_another(size: int) -> None:
    """Neighbours can be picked out: no two places within 512 are nearly alike."""
    columns = EmbeddingColumns(size)
    angles = torch.arange(512)[:, None] * columns.frequencies
    likeness = angles.cos().mean(1)
    assert likeness[0] == 1
    assert likeness[1:].max() < 0.7


@pytest.mark.parametrize("family", FAMILIES)
def test_segments_are_opposites(family: str, stores: dict[str, Store]) -> None:
    _, counted, _ = started(family, stores)
    table = counted.model.encoder.embeddings.segment.weight
    if len(table) < 2:
        return
    wanted = torch.zeros_like(table)
    wanted[:2, EmbeddingColumns(table.shape[1]).segment] = torch.tensor(
        [-SEGMENT_LENGTH, SEGMENT_LENGTH]
    )
    assert torch.equal(table, wanted)


def assert_orthogonal(weight: Tensor) -> None:
    """Of a wide matrix the rows, of a tall one the columns."""
    wide = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    torch.testing.assert_close(wide, torch.eye(len(wide)), atol=1e-5, rtol=0)


def larger(family: str, stores: dict[str, Store], heads: int) -> Learner:
    """An initialized learner with room for heads of several kinds."""
    name, kind, _ = FAMILIES[family]
    width = 64 if family == "albert" else 128
    overrides = [
        *SMALL, "model.hidden_size=128", f"model.num_attention_heads={heads}",
        f"model.embedding_size={width}",
    ]  # fmt: skip
    preset = fit_to_corpus(load_preset(name, overrides), stores[kind])
    learner = fresh(preset)
    initialize_from_corpus(learner, stores[kind], token_counts(stores[kind]))
    return learner


@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_other_heads_compare(family: str, stores: dict[str, Store]) -> None:
    """Queries are keys; values and output undo each other but for the gain."""
    learner = larger(family, stores, heads=8)
    first, last = 0 if family == "roberta" else 2, 8 - len(OFFSETS)
    rows = slice(16 * first, 16 * last)
    for attention in learner.model.encoder.attentions:
        part: Any = attention
        query, key, value = (one[rows] for one in part.query_key_value.weight.chunk(3))
        assert torch.equal(query, key)
        assert_orthogonal(query)
        assert_orthogonal(value)
        torch.testing.assert_close(part.output.weight[:, rows], GAIN * value.T)


def embedded(encoder: Any, ids: Tensor, segments: Tensor) -> Tensor:
    """What the first layer sees."""
    tables = encoder.embeddings
    first = encoder.config.pad_token_id + 1 if encoder.config.family == "roberta" else 0
    places = tables.position.weight[first : first + ids.shape[1]]
    x = tables.norm(tables.token(ids) + places + tables.segment(segments))[0]
    return x if encoder.projection is None else encoder.projection(x)


@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_two_heads_look_at_neighbours(family: str, stores: dict[str, Store]) -> None:
    """Most of the attention is on the token before or after, and its words arrive in the room."""
    learner = larger(family, stores, heads=4)
    encoder: Any = learner.model.encoder
    ids = torch.randint(5, 5 + 200, (1, 30), generator=torch.Generator().manual_seed(3))
    x = embedded(encoder, ids, torch.zeros_like(ids))
    attention = encoder.attentions[0]
    query, key, value = attention.query_key_value(x).chunk(3, -1)
    for place, offset in enumerate(OFFSETS):
        part = slice(32 * (3 - place), 32 * (4 - place))
        weights = (query[:, part] @ key[:, part].T / 32**0.5).softmax(-1)
        inner = range(2, 28)
        assert min(weights[i, i + offset].item() for i in inner) > 0.5
        if encoder.projection is not None:  # E < H: there is room
            written = value[:, part] @ attention.output.weight[:, part].T
            torch.testing.assert_close(
                written @ encoder.projection.weight, torch.zeros(30, 64), atol=1e-4, rtol=0
            )
            torch.testing.assert_close(
                written.norm(dim=1), NEIGHBOUR_GAIN * value[:, part].norm(dim=1)
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_way_to_the_layers_and_back(family: str, stores: dict[str, Store]) -> None:
    _, counted, _ = started(family, stores)
    for model in counted.models():
        projection = model.encoder.projection
        assert (projection is None) == (family in ("bert", "roberta", "spanbert"))
        if projection is None:
            continue
        assert_orthogonal(projection.weight)
        if "masked_lm" in model.heads:
            head: Any = model.heads["masked_lm"]
            assert torch.equal(head.dense.weight, projection.weight.T)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_output_bias_is_the_log_of_smoothed_frequencies(
    family: str, stores: dict[str, Store]
) -> None:
    _, counted, store = started(family, stores)
    counts = token_counts(store)
    model = counted.generator or counted.model
    head: Any = model.heads["masked_lm"]
    wanted = [math.log((count + 1) / (counts.sum() + len(counts))) for count in counts]
    torch.testing.assert_close(head.bias, torch.tensor(wanted), rtol=1e-5, atol=1e-5)
    assert head.bias.exp().sum().item() == pytest.approx(1, rel=1e-5)


def test_electras_models_share_their_embeddings(stores: dict[str, Store]) -> None:
    _, counted, _ = started("electra", stores)
    assert counted.generator is not None
    assert counted.generator.encoder.embeddings is counted.model.encoder.embeddings


@pytest.mark.parametrize("family", ["albert", "electra"])
def test_the_same_values_every_time(family: str, stores: dict[str, Store]) -> None:
    torch.manual_seed(3)
    _, one, _ = started(family, stores)
    torch.manual_seed(4)
    _, two, _ = started(family, stores)
    for name, tensor in one.named_parameters():
        assert torch.equal(tensor, two.get_parameter(name))


def test_a_text_without_pairs_starts_quietly(tmp_path: Path) -> None:
    """One piece a document: no vectors to take, so the table stays as it was created."""
    documents = [[f"s{number}"] for number in range(30)]
    store = make_store(tmp_path / "store", documents, write_wordpiece(tmp_path / "tokenizer"))
    preset = fit_to_corpus(load_preset("albert-tiny"), store)
    plain, counted = fresh(preset), fresh(preset)
    initialize_from_corpus(counted, store, token_counts(store))
    table = counted.model.encoder.embeddings.token.weight
    assert torch.equal(table, plain.model.encoder.embeddings.token.weight)


# What it leaves.


def theirs_name(folder: Path) -> str:
    """The class of `transformers` that a model folder is for."""
    (name,) = json.loads((folder / "config.json").read_text())["architectures"]
    return name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_opens_in_transformers(family: str, stores: dict[str, Store], tmp_path: Path) -> None:
    name, kind, overrides = FAMILIES[family]
    result = pretrain(name, stores[kind].folders, tmp_path / "run", overrides=[*SMALL, *overrides])
    assert result.finished
    folders = ["model", "generator"] if family == "electra" else ["model"]
    for folder in folders:
        ours = litebert.load(tmp_path / "run" / folder)
        architecture = getattr(transformers, theirs_name(tmp_path / "run" / folder))
        _, whole = architecture.from_pretrained(tmp_path / "run" / folder, output_loading_info=True)
        assert not whole["missing_keys"]
        assert not whole["unexpected_keys"]
        theirs, report = transformers.AutoModel.from_pretrained(
            tmp_path / "run" / folder, output_loading_info=True
        )
        missing = {key for key in report["missing_keys"] if not key.startswith("pooler.")}
        assert not missing
        trained = "sentence_pair" in ours.heads  # else nothing has trained the pooler
        assert not (trained and report["missing_keys"])
        assert not report["mismatched_keys"]
        ids = torch.randint(5, 200, (2, 9))
        with torch.no_grad():
            hidden = theirs.eval()(ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            torch.testing.assert_close(
                ours(ids).x_NH, hidden.flatten(0, 1), rtol=1e-4, atol=1e-4
            )  # fmt: skip


def test_initialization_is_what_the_setting_says(stores: dict[str, Store], tmp_path: Path) -> None:
    """With a learning rate of nearly nothing the result is the start."""
    name, kind, overrides = FAMILIES["albert"]
    still = ["optimizer.learning_rate=1e-12", "optimizer.name=adamw"]
    learners = dict(zip(("truncated_normal", "corpus"), started("albert", stores)[:2], strict=True))
    for initialization, learner in learners.items():
        out = tmp_path / initialization
        changed = [*SMALL, *overrides, *still, f"initialization={initialization}"]
        pretrain(name, stores[kind].folders, out, overrides=changed)
        model = litebert.load(out / "model")
        for key, tensor in learner.model.state_dict().items():
            torch.testing.assert_close(model.state_dict()[key], tensor, rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", ["albert", "bert"])
def test_two_heads_look_at_one_segment_each(family: str, stores: dict[str, Store]) -> None:
    """From any token, most of the first head's attention is on A, the second's on B."""
    encoder: Any = larger(family, stores, heads=4).model.encoder
    ids = torch.randint(5, 5 + 200, (1, 30), generator=torch.Generator().manual_seed(3))
    segments = torch.tensor([[0] * 12 + [1] * 18])
    x = embedded(encoder, ids, segments)
    query, key, _ = encoder.attentions[0].query_key_value(x).chunk(3, -1)
    for head in (0, 1):
        part = slice(32 * head, 32 * head + 32)
        weights = (query[:, part] @ key[:, part].T / 32**0.5).softmax(-1)
        assert weights[:, segments[0] == head].sum(-1).min() > 0.9


def test_a_table_too_narrow_is_refused(stores: dict[str, Store]) -> None:
    preset, store = fitted("albert", stores)
    model = preset.model.model_copy(update={"embedding_size": 4})
    learner = fresh(preset.model_copy(update={"model": model}))
    with pytest.raises(SettingsError, match="embedding_size of 8 or more"):
        initialize_from_corpus(learner, store, token_counts(store))
