"""POST /reconfigure: the geometry changes while requests run, and nobody is the worse for it."""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from server import PATIENCE_S, Server, turns, wait_until
from test_overload import is_sanitized

PATHS = ["beside", "in_place"]
COUNTING = {"messages": turns("Count from 1 to 95."), "temperature": 0, "max_tokens": 400}


def counted(first: int) -> str:
    return ", ".join(str(n) for n in range(first, 96))


class Stream:
    """One streamed chat on a thread of its own, with all that came."""

    def __init__(self, server: Server, body: dict[str, Any]) -> None:
        self.server = server
        self.body = body | {"stream": True, "stream_options": {"include_usage": True}}
        self.text = ""
        self.comments: list[str] = []
        self.usage: dict[str, Any] = {}
        self.errors: list[Any] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self.server.post("/v1/chat/completions", self.body, stream=True) as answer:
            if answer.status_code != 200:
                self.errors.append(answer.text)
                return
            for line in answer.iter_lines():
                text = line.decode()
                if text.startswith(":"):
                    self.comments.append(text[1:].strip())
                if not text.startswith("data: {"):
                    continue
                event = json.loads(text.removeprefix("data: "))
                if "error" in event:
                    self.errors.append(event)
                for choice in event.get("choices", []):
                    self.text += choice["delta"].get("content") or ""
                self.usage = event.get("usage") or self.usage

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.text or not self._thread.is_alive(), f"the word {words}")

    def end(self) -> str:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        assert self.errors == []
        return self.text


def change(server: Server, **fields: Any) -> dict[str, Any]:
    answer = server.post("/reconfigure", fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def geometry(server: Server) -> dict[str, Any]:
    return server.get("/props").json()["context_geometry"]


def metric(server: Server, name: str) -> float:
    lines = server.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_runs_through_changes(start: Callable[..., Server], path: str) -> None:
    server = start("-c", "1024", "-np", "2", "--metrics", "--reconfigure-path", path)
    alone = server.post("/v1/chat/completions", COUNTING | {"cache_prompt": False}).json()
    stream = Stream(server, COUNTING)
    stream.wait_for("11")
    grown = change(server, n_ctx=2048, n_parallel=3, reason="more room")
    assert (grown["path"], grown["version"], grown["reason"]) == (path, 2, "more room")
    assert [page["fate"] for page in grown["pages"]].count("kept_running") == 1
    assert grown["bytes_moved"] > 0
    stream.wait_for("31")
    assert change(server, n_ctx=1024)["version"] == 3
    stream.wait_for("51")
    assert change(server, n_parallel=2)["version"] == 4
    stream.wait_for("71")
    refused = server.post("/reconfigure", {"n_ctx": 256, "n_parallel": 1})
    assert refused.status_code == 409
    assert len(refused.json()["requests"]) == 1
    assert stream.end() == counted(1) == alone["choices"][0]["message"]["content"]
    assert stream.usage["completion_tokens"] == alone["usage"]["completion_tokens"]
    assert stream.comments.count("reconfigured") == 3
    assert metric(server, "llamacpp:reconfigure_total") == 3
    assert metric(server, "llamacpp:reconfigure_failed_total") == 1
    server.check_clean()
    server.check_alive()


@pytest.mark.parametrize("kind", ["dense", "sliding-window", "recurrent", "hybrid"])
@pytest.mark.parametrize("path", PATHS)
def test_every_memory_goes_on_as_it_would(start: Callable[..., Server], path: str, kind: str,
                                          random_model: Callable[[str], Path]) -> None:
    # One slot: its cells come back where they were.
    server = start("-c", "1024", "-np", "1", "--reconfigure-path", path, model=random_model(kind))
    body = {"prompt": [7, 8, 9] * 20, "n_predict": 120, "temperature": 0, "ignore_eos": True,
            "return_tokens": True, "cache_prompt": False}
    alone = server.complete(**body)["tokens"]
    tokens: list[int] = []
    for event in server.stream("/completion", body):
        tokens += event.get("tokens", [])
        if len(tokens) == 30:
            change(server, n_ctx=2048, n_parallel=2)
        if len(tokens) == 60:
            change(server, n_ctx=1024, n_parallel=1)
    # The sums of a sliding window run in another order afterwards: docs/reconfigure.md.
    same = 30 if kind == "sliding-window" else 120
    assert tokens[:same] == alone[:same]
    assert len(tokens) == 120
    server.check_clean()


@pytest.mark.parametrize("path", PATHS)
def test_four_streams_and_one_seat(start: Callable[..., Server], path: str) -> None:
    # Where slots are removed, who has one waits outside; nobody is drained or cut.
    server = start("-c", "2048", "-np", "4", "--reconfigure-path", path)
    streams = [Stream(server, COUNTING | {"messages": turns(f"Count from {n} to 95.")})
               for n in range(1, 5)]
    for stream in streams:
        stream.wait_for("12")
    receipt = change(server, n_parallel=1)
    fates = [page["fate"] for page in receipt["pages"]]
    assert fates.count("kept_running") == 1 and fates.count("parked") == 3
    assert {page["reason"] for page in receipt["pages"] if page["fate"] == "parked"} == {"no_seat"}
    for n, stream in enumerate(streams, start=1):
        assert stream.end() == counted(n)
    assert geometry(server)["sequence_capacity"] == 1
    server.check_clean()


@pytest.mark.parametrize("path", PATHS)
def test_another_kv_type_needs_force_and_keeps_requests(start: Callable[..., Server],
                                                        path: str) -> None:
    server = start("-c", "1024", "-np", "2", "--reconfigure-path", path)
    stream = Stream(server, COUNTING)
    stream.wait_for("12")
    refused = server.post("/reconfigure", {"cache_type_k": "f32"})
    assert refused.status_code == 409 and "force" in refused.json()["error"]["message"]
    receipt = change(server, cache_type_k="f32", cache_type_v="f32", force=True)
    assert [page["fate"] for page in receipt["pages"] if page["id_task"] is not None] == [
        "recompute"]
    assert geometry(server)["cache_type_k"] == "f32"
    assert stream.end() == counted(1)
    assert change(server, cache_type_k="f16", cache_type_v="f16", force=True)["version"] == 3
    server.check_clean()
    server.check_alive()


@pytest.mark.parametrize("path", PATHS)
def test_what_cannot_be_built_leaves_all_as_it_was(start: Callable[..., Server], path: str) -> None:
    # H2: the process died when the library refused a shape that had passed the checks.
    server = start("-c", "1024", "-np", "2", "--metrics", "--reconfigure-path", path)
    stream = Stream(server, COUNTING)
    stream.wait_for("12")
    bodies: list[Any] = [
        {"n_ctx": 1}, {"n_ctx": 0}, {"n_ctx": -5}, {"n_ctx": 2**31}, {"n_ctx": "512"},
        {"n_ctx": 1e12}, {"n_ctx": 2**28}, {"n_parallel": 0}, {"n_parallel": -1},
        {"n_parallel": 10000}, {"cache_type_k": "q9_9"}, {"cache_type_k": 3}, {}, [],
        {"kv_unified": "yes"}, {"kv_unified": False}, {"reason": "x" * 300, "n_ctx": 512}]
    for body in bodies:
        answer = server.post("/reconfigure", body)
        assert answer.status_code in (400, 409), (body, answer.text)
        assert answer.json()["error"]["message"]
    empty = requests.post(server.url + "/reconfigure", data="", timeout=PATIENCE_S)
    assert empty.status_code == 400
    assert metric(server, "llamacpp:reconfigure_failed_total") == len(bodies) + 1
    assert metric(server, "llamacpp:reconfigure_total") == 0
    assert geometry(server)["version"] == 1 and geometry(server)["allocated_tokens"] == 1024
    assert stream.end() == counted(1)
    server.check_clean()
    server.check_alive()


@pytest.mark.parametrize("path", PATHS)
def test_builds_that_fail(start: Callable[..., Server], path: str) -> None:
    # H2: a library that refuses ended the server, or the conversations of the old context.
    server = start("-c", "1024", "-np", "2", "--metrics", "--reconfigure-path", path,
                   "--inject-build-faults", "50")
    stream = Stream(server, COUNTING)
    stream.wait_for("12")
    answers = [server.post("/reconfigure", {"n_parallel": 2 + n % 3}) for n in range(1, 12)]
    assert {answer.status_code for answer in answers} == {200, 409}
    failed = [answer.json() for answer in answers if answer.status_code == 409]
    assert all(receipt["rolled_back"] for receipt in failed)
    assert all(receipt["before"] == receipt["after"] for receipt in failed)
    assert metric(server, "llamacpp:reconfigure_failed_total") == len(failed)
    assert stream.end() == counted(1)
    server.check_clean()
    server.check_alive()


def test_quantized_values_without_flash_attention(start: Callable[..., Server]) -> None:
    # H2
    server = start("-c", "512", "-fa", "off")
    answer = server.post("/reconfigure", {"cache_type_v": "q4_0", "force": True})
    assert answer.status_code == 400 and "flash attention" in answer.json()["error"]["message"]
    server.check_alive()


def test_a_dry_run_changes_nothing(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "2")
    plan = change(server, n_ctx=4096, dry_run=True)
    assert plan["dry_run"] and plan["after"]["n_ctx"] == 4096 and plan["version"] == 1
    assert plan["bytes_needed"] > 0
    assert geometry(server)["allocated_tokens"] == 1024
    assert server.get("/reconfigure").json() == {
        "version": 1, "is_running": False, "stage": "none", "last": None}


def test_one_number_everywhere_after_a_change(start: Callable[..., Server]) -> None:
    # H1: clients sized their prompts by a number that was not honoured.
    server = start("-c", "1024", "-np", "3")
    with requests.Session() as old_connection:
        assert old_connection.get(server.url + "/health", timeout=PATIENCE_S).ok
        for n_ctx, n_parallel in ((2048, 4), (512, 1), (768, 3)):
            change(server, n_ctx=n_ctx, n_parallel=n_parallel)
            props = old_connection.get(server.url + "/props", timeout=PATIENCE_S).json()
            assert props["default_generation_settings"]["n_ctx"] == n_ctx
            assert props["total_slots"] == n_parallel
            assert [slot["n_ctx"] for slot in server.slots()] == [n_ctx] * n_parallel
            assert server.get("/v1/models").json()["data"][0]["meta"]["n_ctx"] == n_ctx
            over = server.post("/completion", {"prompt": [50] * n_ctx})
            assert over.status_code == 400 and over.json()["error"]["n_ctx"] == n_ctx
            assert server.complete(prompt=[50] * (n_ctx - 1), n_predict=1)["tokens_predicted"] == 1
            assert server.post(f"/slots/{n_parallel}?action=park", {}).status_code == 400
            beyond = server.post("/completion", {"prompt": "x", "id_slot": n_parallel})
            assert beyond.status_code == 400


@pytest.mark.parametrize("path", PATHS)
def test_the_next_turn_computes_only_its_new_tokens(start: Callable[..., Server],
                                                    path: str) -> None:
    server = start("-c", "2048", "-np", "3", "--reconfigure-path", path)
    asked = ["Count from 1 to 60.", "Count from 10 to 70."]
    replies = [server.chat(text, temperature=0, max_tokens=300) for text in asked]
    said = [reply["choices"][0]["message"]["content"] for reply in replies]
    for fields in ({"n_ctx": 4096}, {"n_parallel": 1}, {"n_parallel": 4, "n_ctx": 2048}):
        change(server, **fields)
        for text, answer in zip(asked, said, strict=True):
            again = server.chat(text, answer, "Say hello.", temperature=0, max_tokens=5)
            assert again["timings"]["prompt_n"] <= 15, (fields, again["timings"])
    server.check_clean()


def test_many_at_once_and_many_in_a_row(start: Callable[..., Server]) -> None:
    # The second caller got a half-changed server; each change left memory behind (H6).
    # On small pages: huge ones round each context up by some MiB, as it happens to lie.
    server = start("-c", "1024", "-np", "2", "--metrics", "--no-huge-pages")
    answers: list[requests.Response] = []

    def ask(n_ctx: int) -> None:
        answers.append(server.post("/reconfigure", {"n_ctx": n_ctx}))

    threads = [threading.Thread(target=ask, args=(512 * n,)) for n in range(3, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert {answer.status_code for answer in answers} <= {200, 503}
    assert 200 in {answer.status_code for answer in answers}
    for answer in answers:
        assert answer.status_code == 200 or answer.headers["Retry-After"]
    first = server.chat("Count from 1 to 40.", temperature=0, max_tokens=200)
    said = first["choices"][0]["message"]["content"]

    def resident_kib() -> int:
        lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    sizes = []
    for round_ in range(100):
        change(server, n_ctx=2048 if round_ % 2 else 1024, n_parallel=3 if round_ % 2 else 2)
        if round_ < 20:
            sizes.append(resident_kib())
    if not is_sanitized(server):  # The address sanitizer keeps what was freed.
        # The old context of the last change goes on a thread of its own.
        alike = sorted(sizes[1::2])  # In the same geometry.
        wait_until(lambda: resident_kib() <= alike[5] * 1.02 + 1024, f"less than {alike}")
    again = server.chat("Count from 1 to 40.", said, "Say hello.", temperature=0, max_tokens=5)
    assert again["timings"]["prompt_n"] <= 15


def test_without_parking_nobody_is_put_out(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "2", "--no-preempt")
    streams = [Stream(server, COUNTING), Stream(server, COUNTING)]
    for stream in streams:
        stream.wait_for("12")
    refused = server.post("/reconfigure", {"n_parallel": 1})
    assert refused.status_code == 409 and "parking is off" in refused.json()["error"]["message"]
    for stream in streams:
        assert stream.end() == counted(1)


def test_a_change_is_for_those_with_a_key(start: Callable[..., Server]) -> None:
    server = start("-c", "512", "--api-key", "secret")
    assert server.post("/reconfigure", {"n_ctx": 1024}).status_code == 401
    assert server.get("/reconfigure").status_code == 401
    server.headers = {"Authorization": "Bearer secret"}
    change(server, n_ctx=1024)


def ask_to_grow(server: Server) -> None:
    with contextlib.suppress(requests.ConnectionError):  # The server may be gone.
        server.post("/reconfigure", {"n_ctx": 8192})


@pytest.mark.parametrize("path", PATHS)
def test_a_signal_in_the_middle_of_a_change(start: Callable[..., Server], path: str) -> None:
    """H4, K3: a stop hung, or cut streams without a word, when a change was under way."""
    for after_s in (0.0, 0.01, 0.03, 0.06, 0.1):
        server = start("-c", "4096", "-np", "3", "--reconfigure-path", path)
        stream = Stream(server, COUNTING)
        stream.wait_for("11")
        changer = threading.Thread(target=ask_to_grow, args=(server,))
        changer.start()
        time.sleep(after_s)  # Somewhere in the change.
        assert server.stop() == 0
        changer.join(PATIENCE_S)
        assert not changer.is_alive()
        assert stream.end() == counted(1)


def test_a_slot_that_was_insisted_on_can_go(start: Callable[..., Server]) -> None:
    """Who waited for slot 3 ended the process when the change left one slot."""
    server = start("-c", "2048", "-np", "4", "--metrics")
    first = Stream(server, COUNTING | {"id_slot": 3, "ignore_eos": True, "max_tokens": 1200})
    first.wait_for("11")
    waits = Stream(server, COUNTING | {"id_slot": 3, "messages": turns("Count from 2 to 95.")})
    wait_until(lambda: metric(server, "llamacpp:requests_deferred") == 1, "the second to be queued")
    assert change(server, n_parallel=1)["version"] == 2
    assert first.end().startswith(counted(1))
    assert waits.end() == counted(2)
    server.check_clean()


def test_a_change_without_parking_waits_for_nobody_for_ever(start: Callable[..., Server]) -> None:
    """Under admission-only whose copy failed was parked, and nobody looked at it again."""
    server = start("-c", "1024", "-np", "2", "--preempt-policy", "admission-only",
                   "--inject-move-faults", "60")
    stream = Stream(server, COUNTING)
    stream.wait_for("11")
    for n_parallel in (3, 2, 4, 2):
        assert server.post("/reconfigure", {"n_parallel": n_parallel}).status_code in (200, 409)
    assert stream.end() == counted(1)
    server.check_clean()
