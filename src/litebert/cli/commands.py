"""The commands, in the order of a newcomer's way. A new command is a public function and a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

START = "0  Start here"
TEXT = "1  Prepare text"
CHOOSE = "2  Choose and plan"
TRAIN = "3  Pretrain"
USE = "4  Fine-tune and use"
MOVE = "5  Move models in and out"
STUDY = "6  Study the papers"
GROUPS = {"tokenizer": "Train a tokenizer, or see what one does."}
DEMO = {
    "demo": "Serve the demo's model of film reviews; it is trained in a minute if there is none."
}
AS_JSON = {"as_json": "Print JSON instead of text."}


@dataclass(frozen=True)
class Command:
    """One command: the function behind it, and what runs it and prints its result."""

    name: str
    function: str  # in `litebert`
    run: str  # module of this package, and function
    panel: str
    arguments: int = 1  # so many parameters are arguments, the others options
    flags: Mapping[str, str] = field(default_factory=dict)  # of the command alone
    fallbacks: Mapping[str, str] = field(default_factory=dict)  # what an argument left out means


COMMANDS = (
    Command("demo", "demo", "demo:demo", START, arguments=0),
    Command("tokenizer train", "train_tokenizer", "text:train_tokenizer", TEXT),
    Command("tokenizer show", "show_tokenizer", "text:show_tokenizer", TEXT, arguments=2),
    Command("prepare", "prepare", "text:prepare", TEXT),
    Command("inspect", "inspect", "text:inspect", TEXT, flags=AS_JSON),
    Command("presets", "presets", "training:presets", CHOOSE, arguments=0),
    Command("plan", "plan", "training:plan", CHOOSE, flags=AS_JSON),
    Command("pretrain", "pretrain", "training:pretrain", TRAIN, fallbacks={"preset": "auto"}),
    Command("distill", "distill", "training:distill", TRAIN),
    Command("evaluate", "evaluate", "training:evaluate", TRAIN, flags=AS_JSON),
    Command("plot", "plot", "training:plot", TRAIN),
    Command("layers", "layers", "reproduction:layers", TRAIN, flags=AS_JSON),
    Command("finetune", "finetune", "tasks:finetune", USE),
    Command("scores", "scores", "tasks:scores", USE),
    Command("predict", "predict", "tasks:predict", USE),
    Command("embed", "embed", "tasks:embed", USE),
    Command("serve", "serve", "serving:serve", USE, flags=DEMO),
    Command("bench", "bench", "tasks:bench", USE, flags=AS_JSON),
    Command("import", "import_model", "models:import_model", MOVE, arguments=2),
    Command("export", "export_model", "models:export_model", MOVE, arguments=2),
    Command("reproduce", "reproduce", "reproduction:reproduce", STUDY),
)
