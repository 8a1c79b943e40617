"""What is measured of a run: a row each, with its unit, its direction and the data it needs.

Accuracies and correlations are in points (hundredths), as the papers print them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One number that a run is given."""

    title: str
    unit: str = "points"
    higher_is_better: bool = True
    data: str | None = None  # the folder below --data that it takes


MEASURES = {
    "parameters": Measure("parameters at the paper's scale", "millions"),
    "speed": Measure("training speed", "tokens/s"),
    "masked_lm_accuracy": Measure("masked tokens predicted"),
    "masked_lm_loss": Measure("masked-LM loss", "nats", higher_is_better=False),
    "next_sentence": Measure("next sentence, the run's own head"),
    "sentence_order": Measure("sentence order, the run's own head"),
    "next_sentence_probe": Measure("next sentence, a probe on the frozen encoder"),
    "sentence_order_probe": Measure("sentence order, a probe on the frozen encoder"),
    "layer_roughness": Measure(
        "change of the L2 distance from layer to layer", "% of its mean", higher_is_better=False
    ),
    "blimp": Measure("BLiMP, plain scoring", data="blimp"),
    "blimp_word": Measure("BLiMP, word left to right", data="blimp"),
    "sst-2_1000": Measure("SST-2, 1,000 labels", data="glue"),
    "sst-2": Measure("SST-2, all labels", data="glue"),
    "sts-b_frozen": Measure("STS-B, frozen encoder", data="glue"),
    "sts-b": Measure("STS-B, fine-tuned", data="glue"),
    "qnli": Measure("QNLI", data="glue"),
    "mnli": Measure("MNLI", data="glue"),
    "qqp": Measure("QQP", data="glue"),
    "wikiann": Measure("WikiANN, entity F1", data="ner"),
    "squad-1.1": Measure("SQuAD 1.1, F1", data="squad"),
    "race": Measure("RACE", data="race"),
    "downstream": Measure("mean of the downstream measures that were made", data="any"),
}
