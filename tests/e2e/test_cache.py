"""A conversation that had to leave the pool goes on from its bytes, not from its first token."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import Server
from test_info import parse_metrics

TURN = {"n_predict": 24, "temperature": 0, "ignore_eos": True, "return_tokens": True}


def prompt(i: int, length: int = 200) -> list[int]:
    """No two of them begin alike."""
    return [300 + i] + [400 + (7 * k + i) % 500 for k in range(length - 1)]


def turn(server: Server, tokens: list[int], **more: Any) -> dict[str, Any]:
    return server.complete(prompt=tokens, **TURN | more)


def next_turn(first: dict[str, Any], tokens: list[int]) -> list[int]:
    return tokens + first["tokens"] + [350, 351, 352, 353]


def values_of(server: Server) -> dict[str, float]:
    return parse_metrics(server.get("/metrics").text)


def test_more_conversations_than_slots_all_go_on(start: Callable[..., Server]) -> None:
    """Eight chats took turns on two slots, and each turn computed the whole chat again."""
    server = start("-c", "512", "-np", "2", "--metrics")
    firsts = [turn(server, prompt(i)) for i in range(8)]
    for i, first in enumerate(firsts):
        tokens = next_turn(first, prompt(i))
        second = turn(server, tokens)
        # The last token of a reply is never computed.
        assert second["timings"]["cache_n"] == len(prompt(i)) + 23
        assert second["timings"]["prompt_n"] == 5
        prefix = second["fermata"]["prefix"]
        assert prefix["tokens"] == second["timings"]["cache_n"]
        assert prefix["from"] in ("pool", "ram")
    values = values_of(server)
    assert values["fermata_cache_hits_total"] >= 6
    assert values["fermata_cache_tokens_total"] >= 6 * 223
    assert values['fermata_cache_bytes{tier="ram"}'] > 0
    server.check_clean()


@pytest.mark.parametrize("args", [
    ("-c", "512", "-np", "2"),
    ("-c", "512", "-np", "2", "--no-kv-unified"),
    ("-c", "512", "-np", "2", "--no-cache-idle-slots"),
    ("-c", "2048", "-np", "2", "--deterministic", "-ub", "64"),
], ids=["pooled", "split", "copied_when_evicted", "deterministic"])
def test_what_comes_back_continues_as_if_it_had_stayed(start: Callable[..., Server],
                                                       args: tuple[str, ...]) -> None:
    """A turn after others had used the slots read like another conversation."""
    with_cache = start(*args)
    stayed = start(*args)
    first = turn(with_cache, prompt(0))
    assert turn(stayed, prompt(0))["content"] == first["content"]
    for i in range(1, 5):
        turn(with_cache, prompt(i))
    tokens = next_turn(first, prompt(0))
    back, straight = (turn(s, tokens, n_predict=100) for s in (with_cache, stayed))
    assert back["fermata"]["prefix"]["from"] == "ram"
    assert straight["fermata"]["prefix"]["from"] == "pool"
    assert back["timings"]["cache_n"] == straight["timings"]["cache_n"] > 0
    assert back["tokens"] == straight["tokens"]


@pytest.mark.parametrize("kind", ["recurrent", "hybrid", "sliding-window"])
def test_every_kind_of_memory_comes_back(start: Callable[..., Server],
                                         random_model: Callable[..., Path], kind: str) -> None:
    """B2: hybrid, recurrent and sliding-window models restored and then computed all again."""
    server = start("-c", "512", "-np", "2", "--swa-full", model=random_model(kind))
    first = turn(server, prompt(0))
    for i in range(1, 5):
        turn(server, prompt(i))
    tokens = next_turn(first, prompt(0))
    back = turn(server, tokens)
    assert back["fermata"]["prefix"]["from"] == "ram"
    assert back["timings"]["prompt_n"] == 5
    fresh = start("-c", "512", "-np", "2", "--swa-full", model=random_model(kind))
    assert turn(fresh, prompt(0))["content"] == first["content"]
    assert turn(fresh, tokens)["tokens"] == back["tokens"]


@pytest.mark.parametrize("off", [("--cache-ram", "0"), ("--no-cache-prompt",)])
def test_off_means_off(start: Callable[..., Server], off: tuple[str, ...]) -> None:
    server = start("-c", "512", "-np", "1", "--metrics", *off)
    first = turn(server, prompt(0))
    turn(server, prompt(1))
    back = turn(server, next_turn(first, prompt(0)))
    assert back["fermata"]["prefix"] == {"from": "none", "tokens": 0}
    assert values_of(server)['fermata_cache_bytes{tier="ram"}'] == 0


def test_a_request_can_decline(start: Callable[..., Server]) -> None:
    server = start("-c", "512", "-np", "1")
    first = turn(server, prompt(0))
    turn(server, prompt(1))
    back = turn(server, next_turn(first, prompt(0)), cache_prompt=False)
    assert back["timings"]["cache_n"] == 0


def test_the_budget_is_a_cap(start: Callable[..., Server]) -> None:
    """A8: the RAM of kept conversations grew past the budget by one entry each time."""
    server = start("-c", "512", "-np", "1", "--cache-ram", "1", "--metrics")
    for i in range(30):
        turn(server, prompt(i, 300))
        assert values_of(server)['fermata_cache_bytes{tier="ram"}'] <= 1 << 20
    assert values_of(server)["fermata_cache_evicted_total"] > 0
    server.check_clean()
    server.check_alive()


def test_unrelated_prompts_get_nothing_of_each_other(start: Callable[..., Server]) -> None:
    """C1: a new request continued somebody else's conversation."""
    server = start("-c", "512", "-np", "2")
    lengths = [20 + 5 * (i % 50) for i in range(40)]
    for i, length in enumerate(lengths):
        one = turn(server, prompt(i, length), n_predict=4)
        assert one["timings"]["cache_n"] == 0
    alone = start("-c", "512", "-np", "2", "--cache-ram", "0")
    for i in (0, 17, 39):
        ours = turn(server, prompt(100 + i, lengths[i]), n_probs=5)
        theirs = turn(alone, prompt(100 + i, lengths[i]), n_probs=5)
        assert ours["content"] == theirs["content"]


def test_keys_do_not_see_each_others_conversations(start: Callable[..., Server]) -> None:
    """C1: the time to the first token told what somebody else had asked."""
    server = start("-c", "1024", "-np", "2", "--api-key", "one,two")
    seen = []
    for key in ("one", "two", "one", "two"):
        server.headers = {"Authorization": f"Bearer {key}"}
        seen.append(turn(server, prompt(0))["timings"]["cache_n"])
    assert seen[:2] == [0, 0]
    assert seen[2] == seen[3] == len(prompt(0)) - 1


def test_idle_conversations_do_not_slow_others_down(start: Callable[..., Server]) -> None:
    """Each prompt looked at the cells of all conversations before it, and took longer."""
    server = start("-c", "4096", "-np", "4")
    first = turn(server, prompt(0))
    turn(server, prompt(1))
    second = turn(server, next_turn(first, prompt(0)))
    assert second["fermata"]["prefix"]["from"] == "ram"
    assert second["timings"]["prompt_n"] == 5
    kept = start("-c", "4096", "-np", "4", "--no-cache-idle-slots")
    first = turn(kept, prompt(0))
    turn(kept, prompt(1))
    second = turn(kept, next_turn(first, prompt(0)))
    assert second["fermata"]["prefix"]["from"] == "pool"
