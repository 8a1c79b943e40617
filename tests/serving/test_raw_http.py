"""Bytes that no decent client sends; `python -m tests.serving.raw_http` sends many more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving.raw_http import check_attack, mutants, quick_attacks, sent
from tests.serving.service import Service, start, write_models

pytestmark = pytest.mark.slow

# What must be among the answers, and not only that the service lives.
EXPECTED = {
    "slow headers": {408}, "wrong lengths": {400, 413}, "large bodies": {413},
    "deep JSON": {400}, "odd values": {200, 400, 422}, "many inputs": {422},
    "large headers": {431}, "pipelined": {200}, "no HTTP": {200, 400, 422},
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = write_models(tmp_path_factory.mktemp("models"))["tuned"]
    found = start(folder, "--set", "header_seconds=1", "--set", "body_seconds=1")
    yield found
    assert found.stop() == 0
    assert "Traceback" not in found.log, found.log[found.log.index("Traceback") :][:3000]


@pytest.mark.parametrize("name", quick_attacks(0.0))
def test_the_service_lives(service: Service, name: str) -> None:
    found = set(check_attack(service, quick_attacks(0.2)[name]))
    assert EXPECTED.get(name, set()) <= found


def test_mutants_of_good_requests(service: Service) -> None:
    assert len(check_attack(service, sent(*mutants(200, seed=1)))) > 50
