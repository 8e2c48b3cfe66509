"""A client that goes away frees its cells, in every phase."""

import random
import re
import socket
from collections.abc import Callable, Iterator

import pytest

from server import Server, raw_post, reset, wait_until

LONG = {"prompt": "Tell me a story", "n_predict": 7000, "ignore_eos": True}


@pytest.fixture
def narrow(start: Callable[..., Server]) -> Iterator[Server]:
    """One slot and slow prompts, so that phases last long enough to be hit."""
    server = start("-np", "1", "-c", "8192", "-ub", "32", "--metrics")
    yield server
    server.check_clean()
    server.check_alive()


def generated(server: Server) -> float:
    """All tokens generated so far, as /metrics counts them."""
    found = re.search(r"^llamacpp:tokens_predicted_total (\S+)$", server.get("/metrics").text, re.M)
    assert found
    return float(found.group(1))


def predicted(server: Server) -> int:
    return server.slots()[0]["next_token"][0]["n_decoded"]


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["fin", "rst"])
@pytest.mark.parametrize("stream", [True, False])
def test_while_decoding(narrow: Server, leave: Callable[[socket.socket], None],
                        stream: bool) -> None:
    # D1: after a disconnect the slot generated on to the limit.
    sock = raw_post(narrow, "/completion", LONG | {"stream": stream})
    wait_until(lambda: predicted(narrow) > 3, "some tokens")
    leave(sock)
    narrow.check_clean()
    total = generated(narrow)
    narrow.check_alive()
    assert generated(narrow) == total + 1


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["fin", "rst"])
@pytest.mark.parametrize("stream", [True, False])
def test_while_prefilling(narrow: Server, leave: Callable[[socket.socket], None],
                          stream: bool) -> None:
    sock = raw_post(narrow, "/completion", {"prompt": [50] * 8000, "stream": stream})
    wait_until(lambda: narrow.slots()[0]["is_processing"], "the prompt to begin")
    leave(sock)
    narrow.check_clean()
    assert predicted(narrow) == 0


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["fin", "rst"])
@pytest.mark.parametrize("stream", [True, False])
def test_while_queued(narrow: Server, leave: Callable[[socket.socket], None],
                      stream: bool) -> None:
    runner = raw_post(narrow, "/completion", LONG | {"stream": True})
    wait_until(lambda: narrow.slots()[0]["is_processing"], "the first request to run")
    waiting = [raw_post(narrow, "/completion", LONG | {"stream": stream}) for _ in range(20)]
    wait_until(lambda: "requests_deferred 20\n" in narrow.get("/metrics").text, "twenty waiting")
    for sock in waiting:
        leave(sock)
    wait_until(lambda: "requests_deferred 0\n" in narrow.get("/metrics").text, "nobody waiting")
    assert narrow.slots()[0]["is_processing"]
    leave(runner)


def test_at_random_moments(start: Callable[..., Server]) -> None:
    # D1, D3: the slot or the whole server hung.
    server = start("-np", "2", "-c", "8192", "-ub", "32")
    draw = random.Random(7)
    for _ in range(60):
        prompt = [60 + draw.randrange(200) for _ in range(draw.choice([5, 400, 3000]))]
        sock = raw_post(server, "/completion", {"prompt": prompt, "n_predict": 500,
                                                "stream": draw.random() < 0.5})
        sock.settimeout(draw.uniform(0.0, 0.05) or 0.001)
        try:
            sock.recv(draw.choice([1, 4096]))
        except TimeoutError:
            pass
        draw.choice([socket.socket.close, reset])(sock)
        assert server.get("/health").status_code == 200
    server.check_clean()
    server.check_alive()


def test_a_cancelled_prompt_is_not_computed_again(start: Callable[..., Server]) -> None:
    # C6: a client with a timeout never got through, each retry began at zero.
    server = start("-np", "1", "-c", "8192", "-ub", "64", "-b", "64")
    prompt = [70 + i % 100 for i in range(7000)]
    sock = raw_post(server, "/completion", {"prompt": prompt, "n_predict": 1})
    wait_until(lambda: server.slots()[0].get("n_prompt_tokens", 0) > 500, "part of the prompt")
    sock.close()
    server.check_clean()
    retry = server.complete(prompt=prompt, n_predict=1)
    assert retry["timings"]["cache_n"] > 500


def test_a_slow_reader_does_not_hold_up_others(start: Callable[..., Server]) -> None:
    server = start("-np", "2", "-c", "8192")
    slow = raw_post(server, "/completion", LONG | {"n_predict": 3000, "stream": True})
    wait_until(lambda: any(slot["is_processing"] for slot in server.slots()), "the slow one")
    quick = server.complete(prompt="quick", n_predict=200, ignore_eos=True)
    assert quick["tokens_predicted"] == 200
    slow.close()
    server.check_clean()
