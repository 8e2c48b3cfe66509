"""--context-shift: a reply goes on when its window is full, without its oldest tokens."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server import Server, wait_until
from test_info import parse_metrics
from test_preempt import check_nothing_is_left

LONG = {"prompt": "Count from 1 to 90.", "n_predict": 700, "ignore_eos": True, "temperature": 0}


def test_a_reply_goes_on_beyond_the_window(start: Callable[..., Server]) -> None:
    server = start("-c", "256", "-np", "1", "--context-shift", "--metrics")
    reply = server.complete(**LONG)
    assert reply["tokens_predicted"] == 700 and reply["truncated"]
    assert reply["stop_type"] == "limit" and reply["fermata"]["recomputed_tokens"] == 0
    assert parse_metrics(server.get("/metrics").text)["fermata_context_shifts_total"] >= 4
    streamed = list(server.stream("/completion", LONG | {"cache_prompt": False}))
    assert streamed[-1]["truncated"] and streamed[-1]["tokens_predicted"] == 700
    chat = server.chat("Count from 1 to 90.", max_tokens=400, ignore_eos=True)
    assert chat["usage"]["completion_tokens"] == 400
    assert chat["choices"][0]["finish_reason"] == "length"
    short = server.complete(prompt="Hi", n_predict=10, ignore_eos=True)
    assert not short["truncated"]
    server.check_clean()
    server.check_alive()


def test_without_it_a_reply_ends_with_the_window(start: Callable[..., Server]) -> None:
    server = start("-c", "256", "-np", "1", "--no-context-shift")
    reply = server.complete(**LONG)
    assert reply["truncated"] and reply["stop_type"] == "limit"
    assert reply["tokens_evaluated"] + reply["tokens_predicted"] == 256


def test_what_is_kept_and_dropped(start: Callable[..., Server]) -> None:
    server = start("-c", "256", "-np", "1", "--context-shift", "--keep", "5", "--metrics")
    settings = server.complete(**LONG)["generation_settings"]
    assert settings["n_keep"] == 5
    texts = {}
    for fields in ({"n_keep": 0}, {"n_keep": -1}, {"n_keep": 10**9}, {"n_discard": 1},
                   {"n_discard": 10**9}, {"n_discard": 100, "n_keep": 50}):
        reply = server.complete(**LONG | fields | {"cache_prompt": False, "n_predict": 400})
        assert reply["tokens_predicted"] == 400 and reply["truncated"]
        texts[str(fields)] = reply["content"]
    assert len(set(texts.values())) > 1, "what is dropped matters"
    server.check_clean()


@pytest.mark.parametrize("layout", [[], ["--no-kv-unified"]])
def test_parks_beside_shifts(start: Callable[..., Server], layout: list[str]) -> None:
    plain = start("-c", "256", "-np", "1", "--context-shift", *layout)
    expected = plain.complete(**LONG)["content"]
    for every in ("1", "7"):
        server = start("-c", "256", "-np", "1", "--context-shift", "--preempt-every", every,
                       "--metrics", *layout)
        reply = server.complete(**LONG)
        assert reply["tokens_predicted"] == 700 and reply["truncated"]
        assert reply["fermata"]["modes"] == ["swap"] and reply["fermata"]["exactness"] == "exact"
        # Until the first shift to the letter; after it cells come back in another order.
        assert reply["content"][:400] == expected[:400]
        check_nothing_is_left(server)
    server = start("-c", "256", "-np", "1", "--context-shift", "--preempt-every", "7",
                   "--preempt-ram", "0", "--metrics", *layout)
    reply = server.complete(**LONG)
    assert reply["tokens_predicted"] == 700 and reply["fermata"]["modes"] == ["recompute"]
    assert reply["fermata"]["exactness"] == "recomputed"
    check_nothing_is_left(server)


def test_four_that_overflow_the_pool(start: Callable[..., Server]) -> None:
    server = start("-c", "512", "-np", "4", "--context-shift", "--metrics")
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda i: server.complete(
            **LONG | {"prompt": f"The same beginning for all of them. {i}"}), range(4)))
    assert [reply["tokens_predicted"] for reply in replies] == [700] * 4
    choices = server.complete(**LONG | {"n": 3, "temperature": 1})
    assert [choice["tokens_predicted"] for choice in choices] == [700] * 3
    check_nothing_is_left(server)


def test_a_later_request_does_not_start_from_moved_cells(start: Callable[..., Server],
                                                         tmp_path: Path) -> None:
    server = start("-c", "256", "-np", "1", "--context-shift", "--page-dir",
                   str(tmp_path / "pages"))
    prompt = [300 + i for i in range(20)]
    first = server.complete(**LONG | {"prompt": prompt, "n_keep": 8, "return_tokens": True})
    tail = first["tokens"][-100:]
    fresh = start("-c", "256", "-np", "1").complete(
        prompt=prompt[:8] + tail, n_predict=20, temperature=0)
    again = server.complete(prompt=prompt[:8] + tail, n_predict=20, temperature=0)
    assert again["timings"]["cache_n"] <= 8
    assert again["content"] == fresh["content"]


def test_a_memory_that_cannot_shift_says_so(start: Callable[..., Server],
                                            random_model: Callable[[str], Path]) -> None:
    server = start("-c", "256", "-np", "1", "--context-shift", model=random_model("hybrid"))
    wait_until(lambda: any("--context-shift" in line for line in server.errors), "the warning")
    reply = server.complete(prompt="x", n_predict=700, ignore_eos=True)
    assert reply["truncated"] and reply["tokens_predicted"] < 256
