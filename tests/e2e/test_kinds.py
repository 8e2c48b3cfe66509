"""Models of every kind of memory serve, in both layouts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server import Server

KINDS = ["dense", "sliding-window", "recurrent", "hybrid"]


@pytest.mark.parametrize("layout", ["--kv-unified", "--no-kv-unified"])
@pytest.mark.parametrize("kind", KINDS)
def test_serves(start: Callable[..., Server], random_model: Callable[[str], Path], kind: str,
                layout: str) -> None:
    server = start("-c", "2048", "-np", "4", layout, model=random_model(kind))
    prompt = [100 + i % 300 for i in range(150)]
    body = {"prompt": prompt, "n_predict": 40, "temperature": 0, "return_tokens": True}
    alone = server.complete(cache_prompt=False, **body)
    assert alone["tokens_predicted"] == 40
    assert server.complete(cache_prompt=False, **body)["tokens"] == alone["tokens"]

    # C3: the same prompt again, then a prefix of it: an abort on memories that cannot be cut.
    for again in (prompt, prompt[:75], prompt):
        reply = server.complete(**(body | {"prompt": again}))
        assert reply["timings"]["cache_n"] + reply["timings"]["prompt_n"] == len(again)
        assert reply["tokens_predicted"] == 40

    # The next turn goes on from what is resident, whatever the memory.
    turn = prompt + alone["tokens"] + [5, 6, 7]
    first = server.complete(**body)
    second = server.complete(prompt=prompt + first["tokens"] + [5, 6, 7], n_predict=5)
    assert second["timings"]["cache_n"] >= len(prompt) + len(first["tokens"]) - 1, turn

    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(
            lambda i: server.complete(prompt=[200 + i, *prompt], n_predict=30), range(6)))
    assert [reply["tokens_predicted"] for reply in replies] == [30] * 6
    server.check_clean()
    server.check_alive()


def test_agents_share_a_common_prompt(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "4")
    common = [90 + i % 200 for i in range(600)]
    server.complete(prompt=[*common, 1], n_predict=1)
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(
            lambda i: server.complete(prompt=[*common, 2, i], n_predict=20), range(4)))
    for reply in replies:
        assert reply["timings"]["cache_n"] >= 600
