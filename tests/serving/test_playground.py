"""The playground in a real browser: every view, wide and narrow, light and dark.

Run with `make browser`, which installs what it needs: Debian's chromium, axe-core from npm.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import litebert
from tests.serving.service import LABELS, Service, start, write_models
from tests.tasks.small import sentence

pytestmark = pytest.mark.browser

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
AXE = Path(__file__).parents[2] / ".browser" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = os.environ.get("PLAYGROUND_PICTURES")  # a folder for screenshots, to look at them
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
QUIET = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic",
]  # fmt: skip
# The height of the smallest word in a drawing; of the page's head.
SMALLEST = """Math.min(99, ...[...document.querySelectorAll("svg text")]
    .filter((one) => one.textContent).map((one) => one.getBoundingClientRect().height))"""
HEAD = "document.querySelector('header').offsetHeight"
VIEWS = ("ask", "search", "mask", "order", "layers", "design", "runs", "compare")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    folders = write_models(tmp_path_factory.mktemp("models"))
    runs = tmp_path_factory.mktemp("runs")
    for number in range(2):
        folder = runs / f"run-{number}"
        folder.mkdir()
        lines = [
            f'{{"kind": "training", "loss": {{"masked_lm": {7 - step / 10 + number}}}, '
            f'"accuracy": {{"masked_lm": {step / 100}}}, "step": {step}, "tokens": {100 * step}, '
            f'"time": {{"progress": {step / 40}, "tokens_per_second": 900}}}}'
            for step in range(1, 40)
        ]
        evaluation = {"kind": "evaluation", "loss": {"masked_lm": 6.5}, "step": 39, "tokens": 3900,
                      "sample": "the [ferry] crossed the [river≠sea]"}  # fmt: skip
        content = [*lines, *([json.dumps(evaluation)] if number else [])]
        (folder / "metrics.jsonl").write_text("\n".join(content) + "\n")
    (runs / "run-1" / "warnings.txt").write_text("the loss is no better than chance\n")
    found = start(
        f"exact={folders['tuned']}@fp32", f"small={folders['tuned']}@int8",
        f"pretrained={folders['pretrained']}@fp32", "--runs", runs,
    )  # fmt: skip
    yield found, folders["tuned"]
    found.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium here; `make browser` installs it")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield opened
        opened.close()


class Visitor:
    """A page that remembers what went wrong, and whom it asked."""

    def __init__(self, browser: Any, service: Service, size: str, scheme: str) -> None:
        width, height = SIZES[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.origin = f"http://127.0.0.1:{service.port}"
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, view: str, query: str = "") -> Any:
        self.page.goto("about:blank")
        self.page.goto(f"{self.origin}/#/{view}?{query}")
        self.page.wait_for_selector("main h2")
        self.page.wait_for_selector("#status:empty", state="attached")
        return self.page

    def check(self) -> None:
        assert not self.errors
        strangers = [url for url in self.asked if not url.startswith((self.origin, "about:"))]
        assert not strangers
        self.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_view_opens(
    browser: Any, service: tuple[Service, Path], size: str, scheme: str
) -> None:
    visitor = Visitor(browser, service[0], size, scheme)
    heads = set()
    for view in VIEWS:
        page = visitor.open(view)
        assert page.locator("nav a[aria-current]").get_attribute("href").startswith(f"#/{view}")
        assert page.locator("[role=alert]").count() == 0
        if view == "runs":  # curves with their axes
            page.wait_for_selector("svg .curve")
            assert page.locator("svg .grid").count() > 1
        over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert over <= 0, f"{view} is {over} pixels too wide"
        assert page.evaluate(SMALLEST) >= 11, f"words in a drawing of {view} are too small to read"
        heads.add(page.evaluate(HEAD))
        if PICTURES:
            page.wait_for_timeout(300)
            page.screenshot(path=f"{PICTURES}/{view}-{size}-{scheme}.png", full_page=True)
        if AXE.is_file():
            page.evaluate(AXE.read_text())
            found = page.evaluate("axe.run()")
            serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
            assert not serious, [(v["id"], v["nodes"][0]["html"]) for v in serious]
    assert max(heads) - min(heads) <= 20, "the head of the page jumps from view to view"
    visitor.check()


def test_what_is_shown_is_what_python_says(browser: Any, service: tuple[Service, Path]) -> None:
    visitor = Visitor(browser, service[0], "wide", "light")
    page = visitor.open("ask", "model=exact")
    text = sentence(3)
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_role("button", name="Ask").click()
    expected = litebert.Engine(service[1], "fp32").predict(text)
    page.wait_for_selector(f"strong:has-text('{expected.label}')")
    shown = page.locator(".panel[aria-live] .bar .value").all_inner_texts()
    assert sorted(shown) == sorted(f"{100 * p:.1f} %" for p in expected.probabilities.values())
    assert page.locator(".panel[aria-live] .bar .name").all_inner_texts()[0] in LABELS
    # The address restores the view.
    again = visitor.context.new_page()
    again.goto(page.url)
    again.wait_for_selector(f"strong:has-text('{expected.label}')")
    assert again.get_by_label("Text", exact=True).input_value() == text
    page.get_by_role("button", name="Copy as curl").click()
    assert text in page.locator("pre").inner_text()
    visitor.check()


def test_layers_search_and_design_are_what_python_says(
    browser: Any, service: tuple[Service, Path]
) -> None:
    visitor = Visitor(browser, service[0], "wide", "light")
    engine, text = litebert.Engine(service[1], "fp32"), sentence(4, 6)
    page = visitor.open("layers", f"model=exact&text={text.replace(' ', '+')}&layer=2&head=2")
    page.wait_for_selector("table.heat")
    last = engine.predict(text)
    said = f"{last.label} ({100 * max(last.probabilities.values()):.1f} %)"
    assert page.get_by_text(f"After the last layer: {said}.").count() == 1
    assert page.locator("table.heat tbody tr").count() == len(text.split()) + 2
    assert page.get_by_text("Attention of layer 2 of 3, head 2").count() == 1  # as the link says
    page.get_by_role("button", name="head 1").click()
    assert page.url.endswith("head=1")
    lines = [sentence(number) for number in range(5)]
    visitor.open("search", f"model=exact&question={text}&lines=" + "%0A".join(lines))
    page.wait_for_selector(".bar.long.first")
    asked, *others = engine.embed([text, *lines], normalize=True)
    best = max(range(5), key=lambda place: float(asked @ others[place]))
    assert page.locator(".bar.long .name").first.inner_text() == lines[best]
    assert page.locator(".bar.long .value").first.inner_text() == f"{asked @ others[best]:.3f}"
    visitor.open("design", "num_hidden_layers=24&hidden_size=1024&num_attention_heads=16")
    (plan,) = litebert.plan(["albert-large"])
    page.wait_for_selector(f".verdict:has-text('{plan.parameters['total']:,} parameters')")
    page.get_by_role("button", name="bert-base", exact=True).click()
    page.wait_for_selector(".verdict:has-text('109,')")
    assert "sharing=none" in page.url
    visitor.check()


def test_more_lines_than_a_request_takes(browser: Any, service: tuple[Service, Path]) -> None:
    visitor = Visitor(browser, service[0], "wide", "light")
    page = visitor.open("search", "model=exact&question=w1q&lines=" + "%0A".join(["w2q"] * 70))
    page.wait_for_selector(".bar.long >> nth=69")
    visitor.check()


def test_order_compare_and_runs(browser: Any, service: tuple[Service, Path]) -> None:
    visitor = Visitor(browser, service[0], "wide", "light")
    page = visitor.open("order", "first=w1q+w2q&second=w3q")
    before = page.locator(".panel[aria-live] .value").all_inner_texts()
    page.get_by_role("button", name="Swap").click()
    page.wait_for_function("new URLSearchParams(location.hash.split('?')[1]).get('first') == 'w3q'")
    assert len(before) == 2
    page = visitor.open("compare", "left=exact&right=small&text=w1q+w2q")
    page.wait_for_selector(".verdict:has-text('answer')")
    assert page.locator("h3").all_inner_texts() == ["exact · fp32", "small · int8"]
    page = visitor.open("runs", "runs=run-0|run-1")
    page.wait_for_selector("svg .curve >> nth=1")
    assert page.get_by_text("39 steps").count() == 2
    assert page.locator(".problem").inner_text() == "the loss is no better than chance"
    assert page.locator(".wrong s").inner_text() == "river"
    visitor.check()


def test_words_behind_a_mask(browser: Any, service: tuple[Service, Path]) -> None:
    visitor = Visitor(browser, service[0], "wide", "light")
    page = visitor.open("mask", "text=w1q+w2q+w3q&hidden=1")
    page.wait_for_selector("h3:has-text('Mask 1')")
    page.get_by_role("button", name="w3q").click()
    page.wait_for_selector("h3:has-text('Mask 2')")
    assert "hidden=1%2C2" in page.url
    visitor.check()


def test_the_first_load_is_small(browser: Any, service: tuple[Service, Path]) -> None:
    visitor = Visitor(browser, service[0], "wide", "light")
    sizes: list[int] = []
    visitor.page.on("response", lambda response: sizes.append(len(response.body())))
    visitor.open("ask")
    loaded = visitor.page.evaluate("performance.getEntriesByType('navigation')[0].duration")
    assert sum(sizes) < 300_000
    assert loaded < 1000
    visitor.check()
