"""Parked requests for which RAM has no room: their bytes wait on disk, and come back exactly."""

import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from server import Server, turns, wait_until
from test_info import parse_metrics
from test_preempt import check_nothing_is_left
from test_slot_actions import Stream, has_text, text_of

# Wide cells: 1 MiB of RAM holds some hundred tokens.
WIDE = ("-c", "2048", "-np", "4", "-ctk", "f32", "-ctv", "f32", "--metrics", "--preempt-ram", "1")
COUNTING = [{"messages": turns(f"Count from {n} to 95."), "temperature": 0, "max_tokens": 400}
            for n in range(1, 7)]


def figures(server: Server) -> dict[str, float]:
    return parse_metrics(server.get("/metrics").text)


def long_body(**more: Any) -> dict[str, Any]:
    return {"prompt": [300 + i % 200 for i in range(420)], "n_predict": 60, "ignore_eos": True,
            "seed": 3, "temperature": 1.0, "return_tokens": True, "n_probs": 5} | more


def unpark(server: Server, parked: requests.Response) -> requests.Response:
    return server.post(f"/slots?action=unpark&id_task={parked.json()['id_task']}", None)


def essence(reply: dict[str, Any]) -> tuple[Any, ...]:
    return (reply["content"], reply["tokens"], reply["stop_type"],
            reply["completion_probabilities"])


@pytest.mark.parametrize("every", ["1", "7", "50"])
def test_on_disk_and_back_no_byte_differs(start: Callable[..., Server], tmp_path: Path,
                                          every: str) -> None:
    """A park that RAM had no room for was computed again, though there was a disk."""
    expected = essence(start(*WIDE).complete(**long_body()))
    server = start(*WIDE, "--page-dir", str(tmp_path / "pages"), "--preempt-every", every)
    reply = server.complete(**long_body())
    assert essence(reply) == expected
    told = reply["fermata"]
    assert told["parks"] == 59 // int(every)
    assert told["modes"] == ["swap"] and told["exactness"] == "exact"
    assert told["recomputed_tokens"] == 0
    # One that is alone may be back before it is written.
    assert 0 <= told["spilled"] <= told["parks"]
    assert figures(server)["fermata_spills_lost_total"] == 0
    check_nothing_is_left(server)
    wait_until(lambda: figures(server)["fermata_passing_bytes"] == 0, "the writer to be done")


def test_strictly_exact_without_ram(start: Callable[..., Server], tmp_path: Path) -> None:
    """--preempt-ram 0 computed everything again, with a disk at hand and exactness asked for."""
    expected = essence(start(*WIDE).complete(**long_body()))
    flags = (*WIDE, "--preempt-ram", "0", "--preempt-every", "7", "--page-dir",
             str(tmp_path / "pages"))
    server = start(*flags, "--exactness", "strict")
    reply = server.complete(**long_body())
    assert essence(reply) == expected
    assert reply["fermata"]["exactness"] == "exact" and reply["fermata"]["modes"] == ["swap"]
    check_nothing_is_left(server)
    server.stop()
    declared = start(*flags).complete(**long_body())["fermata"]
    assert declared["exactness"] == "recomputed" and declared["modes"] == ["recompute"]


def test_nothing_stays_of_parks_when_all_have_ended(start: Callable[..., Server],
                                                    tmp_path: Path) -> None:
    """Each round left pages of parked requests, and DELETE left those of its conversation."""
    server = start(*WIDE, "-np", "8", "--page-dir", str(tmp_path / "pages"),
                   "--preempt-every", "40")
    for _ in range(3):
        with ThreadPoolExecutor(6) as pool:
            for i, reply in enumerate(pool.map(
                    lambda i: server.post("/v1/chat/completions", COUNTING[i],
                                          headers={"X-Conversation-Id": f"c{i}"}), range(6))):
                text = reply.json()["choices"][0]["message"]["content"]
                assert text == ", ".join(str(n) for n in range(i + 1, 96))
        wait_until(lambda: {p["name"] for p in server.get("/pages").json()["data"]}
                   == {f"c{i}" for i in range(6)}, "one page for each conversation")
    assert figures(server)["fermata_spills_total"] > 0
    for i in range(6):
        assert server.ask("DELETE", f"/pages/c{i}").status_code == 200
    assert server.get("/pages").json()["data"] == []
    check_nothing_is_left(server)


def test_held_on_disk_until_it_is_let_back(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(*WIDE, "--page-dir", str(tmp_path / "pages"))
    body = long_body(n_predict=300, cache_prompt=False)
    expected = server.complete(**body)
    stream = Stream(server, "/completion", body | {"id_slot": 1})
    stream.read_until(has_text)
    parked = server.post("/slots/1?action=park", None)
    assert parked.status_code == 200 and parked.json()["mode"] == "swap"
    wait_until(lambda: figures(server)["fermata_spills_total"] == 1, "its bytes to be on disk")
    told = figures(server)
    assert told['fermata_parked_bytes{tier="disk"}'] == parked.json()["bytes"] > 1 << 20
    assert told["llamacpp:preempt_ram_bytes"] == told["fermata_passing_bytes"] == 0
    assert server.complete(**body)["content"] == expected["content"]
    assert unpark(server, parked).status_code == 200
    assert text_of(stream.rest()) == expected["content"]
    told = figures(server)
    assert told["fermata_spills_back_total"] == 1 and told["fermata_spills_lost_total"] == 0
    check_nothing_is_left(server)


@pytest.mark.parametrize("folder", [True, False])
def test_more_than_ram_holds(start: Callable[..., Server], tmp_path: Path, folder: bool) -> None:
    """Six requests in the cells of two: every reply is whole, whatever was where."""
    more = ("--page-dir", str(tmp_path / "pages")) if folder else ()
    server = start("-c", "768", "-np", "6", *WIDE[4:], *more)
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda body: server.post("/v1/chat/completions", body).json(),
                                COUNTING))
    for n, reply in enumerate(replies, 1):
        said = reply["choices"][0]["message"]["content"]
        assert said.rstrip(".") == ", ".join(str(i) for i in range(n, 96))
    assert sum(reply["fermata"]["parks"] for reply in replies) > 0
    if folder:
        assert figures(server)["fermata_spills_total"] > 0
    else:
        assert figures(server)["fermata_spills_total"] == 0
    check_nothing_is_left(server)


@pytest.mark.parametrize("limit", [("--page-disk-bytes", "1000"), ("--page-ram-bytes", "0"),
                                   ("--page-write-bytes-per-hour", "0")])
def test_what_cannot_be_stored_is_computed_again(start: Callable[..., Server], tmp_path: Path,
                                                 limit: tuple[str, str]) -> None:
    """A disk without room costs time, and the reply says so."""
    server = start(*WIDE, "--page-dir", str(tmp_path / "pages"), *limit)
    body = long_body(n_predict=300, cache_prompt=False, temperature=0)
    stream = Stream(server, "/completion", body | {"id_slot": 1})
    stream.read_until(has_text)
    parked = server.post("/slots/1?action=park", None)
    assert parked.status_code == 200
    lost = 0 if limit[0] == "--page-ram-bytes" else 1
    wait_until(lambda: figures(server)["fermata_spills_lost_total"] == lost, "the write to fail")
    assert unpark(server, parked).status_code == 200
    final = json.loads(stream.rest()[-1].removeprefix("data: "))
    assert final["fermata"]["modes"] == ["recompute"] and final["tokens_predicted"] == 300
    assert final["fermata"]["recomputed_tokens"] > 0 and final["fermata"]["spilled"] == 0
    server.check_clean()
    server.check_alive()


def test_pages_of_parked_requests_are_pages(start: Callable[..., Server], tmp_path: Path) -> None:
    """After a kill -9 whoever asks again starts from what was parked on disk."""
    server = start(*WIDE, "--page-dir", str(tmp_path / "pages"))
    stream = Stream(server, "/completion", long_body(n_predict=300, id_slot=1))
    stream.read_until(has_text)
    assert server.post("/slots/1?action=park", None).status_code == 200
    wait_until(lambda: figures(server)["fermata_spills_total"] == 1, "its bytes to be on disk")
    page, = server.get("/pages").json()["data"]
    assert page["reason"] == "parked" and page["tokens"] >= 420
    server.stop(signal.SIGKILL)
    again = start(*WIDE, "--page-dir", str(tmp_path / "pages"))
    reply = again.complete(**long_body())
    assert reply["fermata"]["prefix"] == {"from": "disk", "tokens": 256}, "its whole blocks"
