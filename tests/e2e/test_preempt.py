"""Too little room for everybody: requests are parked and resumed, and nothing is lost."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from server import PATIENCE_S, Server, raw_post, wait_until
from test_info import parse_metrics

BUDGETS = ["-1", "8192", "1", "0"]
COUNT = " ".join(str(i) for i in range(1, 96))


def metric(server: Server, name: str) -> float:
    for line in server.get("/metrics").text.splitlines():
        if line.startswith(f"llamacpp:{name} "):
            return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def check_nothing_is_left(server: Server) -> None:
    server.check_clean()
    assert metric(server, "requests_preempted") == 0
    assert metric(server, "preempt_ram_bytes") == 0
    values = parse_metrics(server.get("/metrics").text)
    parks = values["llamacpp:n_preempt_total"]
    for mode in ("swap", "recompute"):
        assert values[f"llamacpp:n_preempt_{mode}_total"] == sum(
            value for name, value in values.items()
            if name.startswith(f'fermata_parks_total{{mode="{mode}"'))
    assert parks == (values["llamacpp:n_preempt_swap_total"] +
                     values["llamacpp:n_preempt_recompute_total"])
    assert values["fermata_park_copy_seconds_count"] == values["llamacpp:n_preempt_swap_total"]
    assert values["fermata_parked_seconds_count"] == values["llamacpp:n_resume_total"] <= parks
    assert values['fermata_parked_bytes{tier="ram"}'] == values["fermata_requests_held"] == 0
    server.check_alive()


def long_request(i: int, **more: Any) -> dict[str, Any]:
    return {"prompt": [300 + i] * 20, "n_predict": 400, "ignore_eos": True, "temperature": 0,
            "return_tokens": True} | more


@pytest.mark.parametrize("how", [
    ("--preempt-last-resort-only",),
    ("--inject-move-faults", "40"),
    ("--inject-no-room", "15"),
    ("--preempt-last-resort-only", "--inject-move-faults", "30", "--inject-no-room", "10"),
], ids=["last_resort_only", "copies_fail", "steps_find_no_cells", "all_of_it"])
def test_whatever_fails_on_the_way_the_counting_goes_on(start: Callable[..., Server],
                                                        how: tuple[str, ...]) -> None:
    """A copy that fails, or a step without room, must never reach a client."""
    server = start("-c", "1024", "-np", "6", "--metrics", *how)
    with ThreadPoolExecutor(6) as pool:
        texts = list(pool.map(
            lambda i: server.chat("Count from 1 to 95.", temperature=0)["choices"][0]["message"]
            ["content"], range(6)))
    assert [text.replace(",", "") for text in texts] == [COUNT] * 6
    values = parse_metrics(server.get("/metrics").text)
    assert values["llamacpp:n_preempt_total"] > 0
    if "--preempt-last-resort-only" in how or "--inject-no-room" in how:
        assert sum(value for name, value in values.items()
                   if name.startswith("fermata_parks_total{") and "last_resort" in name) > 0
    if "--inject-move-faults" in how:
        assert values["llamacpp:n_preempt_recompute_total"] > 0 or (
            values["llamacpp:n_recompute_tokens_total"] > 0)
    check_nothing_is_left(server)


@pytest.mark.parametrize("budget", BUDGETS)
def test_four_requests_that_overflow_the_pool_all_finish(start: Callable[..., Server],
                                                         budget: str) -> None:
    """llama-server ends all four with "Context size has been exceeded"."""
    server = start("-c", "1024", "-np", "4", "--preempt-ram", budget, "--metrics")
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda i: server.complete(**long_request(i)), range(4)))
    assert [len(reply["tokens"]) for reply in replies] == [400] * 4
    for reply in replies:
        assert not reply["truncated"]
        assert reply["stop_type"] == "limit"
        # Nothing of the parks is billed.
        assert reply["timings"]["prompt_n"] + reply["timings"]["cache_n"] == 20
        assert reply["timings"]["predicted_n"] == 400
    parks = [reply["fermata"]["parks"] for reply in replies]
    assert sum(parks) == metric(server, "n_preempt_total") > 0
    if budget == "0":
        assert metric(server, "n_preempt_swap_total") == 0
        assert any(reply["fermata"]["exactness"] == "recomputed" for reply in replies)
    if budget in ("-1", "8192"):
        assert metric(server, "n_preempt_recompute_total") == 0
        assert all(reply["fermata"]["exactness"] == "exact" for reply in replies)
    check_nothing_is_left(server)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("times", [2, 4, 8])
def test_everybody_finishes_however_much_is_promised(start: Callable[..., Server], times: int,
                                                     budget: str) -> None:
    """Requests that need 2, 4 and 8 times the pool's cells, all of them seated at once."""
    requests_sent = times * 384 // 220 + 1
    server = start("-c", "384", "-np", str(requests_sent), "--preempt-ram", budget, "--metrics")
    with ThreadPoolExecutor(requests_sent) as pool:
        replies = list(pool.map(lambda i: server.complete(**long_request(i, n_predict=200)),
                                range(requests_sent)))
    assert [len(reply["tokens"]) for reply in replies] == [200] * requests_sent
    assert not any(reply["truncated"] for reply in replies)
    assert metric(server, "n_preempt_total") > 0
    check_nothing_is_left(server)


@pytest.mark.parametrize("clients", [8, 16])
def test_clients_that_count_at_once_all_count_right(start: Callable[..., Server],
                                                    clients: int) -> None:
    """In a pool of 1,024 cells llama-server finished 0 of 8 and 0 of 16."""
    server = start("-c", "1024", "-np", "8", "--metrics")
    with ThreadPoolExecutor(clients) as pool:
        replies = list(pool.map(
            lambda _: server.chat("Count from 1 to 95.", temperature=0), range(clients)))
    for reply in replies:
        assert COUNT in reply["choices"][0]["message"]["content"].replace(",", "")
    check_nothing_is_left(server)


@pytest.mark.parametrize("every", ["1", "3", "7", "50", "200"])
def test_forced_parks_change_no_byte(start: Callable[..., Server], every: str) -> None:
    body = {"prompt": [310 + i % 50 for i in range(60)], "n_predict": 230, "ignore_eos": True,
            "temperature": 1.0, "seed": 11, "n_probs": 5, "return_tokens": True,
            "cache_prompt": False}
    plain = start("-c", "2048", "-np", "2").complete(**body)
    server = start("-c", "2048", "-np", "2", "--metrics", env={"FERMATA_PREEMPT_EVERY": every})
    wait_until(lambda: any("preempt-every" in line for line in server.errors), "the warning")
    reply = server.complete(**body)
    for name in ("tokens", "content", "completion_probabilities"):
        assert reply[name] == plain[name]
    assert reply["fermata"]["parks"] == (230 - 1) // int(every)
    assert reply["fermata"]["exactness"] == "exact"
    check_nothing_is_left(server)


@pytest.mark.parametrize("kind", ["dense", "sliding-window", "recurrent", "hybrid"])
@pytest.mark.parametrize("layout", ["--kv-unified", "--no-kv-unified"])
def test_every_memory_survives_forced_parks(start: Callable[..., Server],
                                            random_model: Callable[[str], Path], kind: str,
                                            layout: str) -> None:
    body = {"prompt": [210 + i for i in range(40)], "n_predict": 60, "ignore_eos": True,
            "temperature": 1.0, "seed": 3, "return_tokens": True, "cache_prompt": False}
    plain = start("-c", "1024", "-np", "2", layout, model=random_model(kind)).complete(**body)
    server = start("-c", "1024", "-np", "2", "--preempt-every", "9", "--metrics", layout,
                   model=random_model(kind))
    assert server.complete(**body)["tokens"] == plain["tokens"], "alone, no byte is lost"
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(
            lambda i: server.complete(prompt=[200 + i] * 40, n_predict=60, ignore_eos=True),
            range(4)))
    for reply in replies:
        assert reply["tokens_predicted"] == 60
        assert reply["fermata"]["parks"] >= 6
        assert reply["fermata"]["modes"] == ["swap"]
        assert reply["fermata"]["exactness"] == "exact"
    check_nothing_is_left(server)


def test_streams_tell_of_parks_in_pairs(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "4", "--preempt-every", "40", "--metrics")
    with requests.post(server.url + "/completion", json=long_request(1, stream=True, n_predict=200),
                       stream=True, timeout=PATIENCE_S) as answer:
        events = answer.content.decode().split("\n\n")
    notices = [event for event in events if event in (": preempted", ": resumed")]
    assert notices == [": preempted", ": resumed"] * 4
    last = json.loads(events[-2].removeprefix("data: "))
    assert last["fermata"]["parks"] == 4
    check_nothing_is_left(server)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_while_parked_leaves_nothing(start: Callable[..., Server],
                                                          stream: bool) -> None:
    server = start("-c", "1024", "-np", "4", "--metrics")
    sockets = [raw_post(server, "/completion", long_request(i, n_predict=900, stream=stream))
               for i in range(4)]
    wait_until(lambda: metric(server, "requests_preempted") > 0, "a park")
    parked = [slot for slot in server.slots() if slot["id"] == -1]
    for slot in parked:
        assert slot["is_preempted"]
        assert slot["preempt_mode"] == "swap"
        assert slot["n_preempt"] >= 1
    for sock in sockets:
        sock.close()
    wait_until(lambda: metric(server, "requests_preempted") == 0, "nobody parked")
    check_nothing_is_left(server)


def test_without_parking_who_finds_no_room_fails_alone(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "4", "--no-preempt", "--metrics")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(
            lambda i: server.post("/completion", long_request(i)), range(4)))
    codes = [answer.status_code for answer in answers]
    assert set(codes) == {200, 500}
    for answer in answers:
        if answer.status_code == 500:
            assert answer.json()["error"]["message"] == "Context size has been exceeded."
    check_nothing_is_left(server)


def test_admission_only_parks_nobody(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "4", "--preempt-policy", "admission-only", "--metrics")
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda i: server.complete(**long_request(i)), range(4)))
    assert [len(reply["tokens"]) for reply in replies] == [400] * 4
    assert metric(server, "n_preempt_total") == 0
    check_nothing_is_left(server)


def test_higher_priority_gets_the_place_of_lower(start: Callable[..., Server]) -> None:
    """The only slot is taken for a long reply; who is more urgent does not wait for its end."""
    server = start("-c", "1024", "-np", "1", "--metrics")
    with ThreadPoolExecutor(2) as pool:
        low = pool.submit(server.complete, **long_request(1, n_predict=900))
        wait_until(lambda: not server.is_idle(), "the first to run")
        equal = pool.submit(server.complete, **long_request(2, n_predict=5))
        wait_until(lambda: metric(server, "requests_deferred") == 1, "one to wait")
        urgent = server.complete(**long_request(3, n_predict=100, priority=5))
        assert urgent["tokens_predicted"] == 100 and urgent["fermata"]["parks"] == 0
        assert low.result()["fermata"]["parks"] == 1
        assert len(low.result()["tokens"]) == 900
        assert equal.result()["tokens_predicted"] == 5
    values = parse_metrics(server.get("/metrics").text)
    assert values['fermata_parks_total{mode="swap",reason="priority"}'] == 1
    check_nothing_is_left(server)


def test_a_prompt_that_fills_the_pool_runs_beside_a_generation(
        start: Callable[..., Server]) -> None:
    server = start("-c", "512", "-np", "2", "--metrics")
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(server.complete, **long_request(1, n_predict=300))
        wait_until(lambda: not server.is_idle(), "the first to run")
        late = server.complete(prompt=[320] * 450, n_predict=30, ignore_eos=True)
        assert late["tokens_predicted"] == 30
        assert len(running.result()["tokens"]) == 300
    check_nothing_is_left(server)
