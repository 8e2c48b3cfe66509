"""H4: who came just as a change or sleep began was put in a queue that nobody served.

Each round begins a change, or waits for sleep, and asks at random moments around it.
FERMATA_ROUNDS sets how many (300 by hand: docs/hacking.md).
"""

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from server import PATIENCE_S, Server, raw_post
from test_cache import prompt, turn
from test_info import parse_metrics
from test_page_routes import wait_pages

ANSWER_S = 10.0
ROUNDS = os.environ.get("FERMATA_ROUNDS")
CHANGES = [{"n_parallel": 1}, {"n_parallel": 3}, {"n_ctx": 4096}, {"n_ctx": 2048, "n_parallel": 2},
           {"n_parallel": 4, "n_ctx": 8192}]


class Round:
    """Asks, each on a thread of its own after a pause of its own, and what was wrong."""

    def __init__(self, server: Server, drawn: random.Random) -> None:
        self.server = server
        self.drawn = drawn
        self.bad: list[Any] = []
        self.threads: list[threading.Thread] = []

    def ask_within(self, span_s: float, what: Callable[[], Any]) -> None:
        pause_s = self.drawn.uniform(0, span_s)

        def act() -> None:
            time.sleep(pause_s)
            begun = time.monotonic()
            answer = what()
            took_s = time.monotonic() - begun
            well = answer is None or answer.status_code == 200 or (
                answer.status_code == 503 and "Retry-After" in answer.headers)
            if not well or took_s > ANSWER_S:
                self.bad.append((took_s, answer.text if answer is not None else "left"))

        thread = threading.Thread(target=act)
        thread.start()
        self.threads.append(thread)

    def leave(self) -> None:
        """Asks for much and hangs up at once."""
        with contextlib.suppress(OSError):
            raw_post(self.server, "/completion", {"prompt": "gone", "n_predict": 500,
                                                  "ignore_eos": True}).close()

    def all_within(self, span_s: float) -> None:
        self.ask_within(span_s, self.complete)
        self.ask_within(span_s, lambda: self.server.get("/slots"))
        self.ask_within(span_s, lambda: self.server.ask(
            "POST", "/slots/0?action=page_in&page=chat"))
        self.ask_within(span_s, self.leave)

    def complete(self) -> requests.Response:
        answer = self.server.post("/completion", {"prompt": "one", "n_predict": 3,
                                                  "ignore_eos": True})
        if answer.status_code == 200 and answer.json()["tokens_predicted"] != 3:
            self.bad.append(answer.text)
        return answer

    def end(self) -> None:
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a request hangs"
        assert self.bad == []


def with_a_page(start: Callable[..., Server], tmp_path: Path, *flags: str) -> Server:
    server = start("-c", "2048", "-np", "2", "--page-dir", str(tmp_path / "pages"), *flags)
    turn(server, prompt(0), conversation="chat")
    wait_pages(server, 1)
    return server


@pytest.mark.parametrize("path", ["beside", "in_place"])
def test_around_a_change(start: Callable[..., Server], tmp_path: Path, path: str) -> None:
    server = with_a_page(start, tmp_path, "--reconfigure-path", path)
    drawn = random.Random(5)
    for number in range(int(ROUNDS or 25)):
        asked = Round(server, drawn)
        asked.all_within(0.25)
        time.sleep(0.05)  # Asks may come before the change, too.
        refused = server.post("/reconfigure", CHANGES[number % len(CHANGES)])
        assert refused.status_code in (200, 409), refused.text
        asked.end()
    server.check_clean()
    assert [page["name"] for page in server.get("/pages").json()["data"] if page["named"]] == [
        "chat"]


def test_around_sleep(start: Callable[..., Server], tmp_path: Path) -> None:
    server = with_a_page(start, tmp_path, "--sleep-idle-seconds", "1", "--metrics")
    drawn = random.Random(7)
    rounds = int(ROUNDS or 10)
    for _ in range(rounds):
        server.check_clean()
        time.sleep(0.95)  # Just before the moment that the asks are spread around.
        asked = Round(server, drawn)
        asked.all_within(0.25)
        asked.end()
    server.check_clean()
    # Most rounds met it asleep or falling asleep.
    slept = parse_metrics(server.get("/metrics").text)["fermata_sleeps_total"]
    assert slept >= rounds / 2
