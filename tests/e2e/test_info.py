"""Routes that tell about the server."""

import re
from pathlib import Path

from server import ROOT, Server, force, wait_until

METRICS = ROOT / "docs" / "metrics.md"


def test_health_and_models(server: Server) -> None:
    for path in ("/health", "/v1/health"):
        assert server.get(path).json() == {"status": "ok"}
    assert server.get("/health").headers["Server"] == "llama.cpp"
    for path in ("/models", "/v1/models"):
        models = server.get(path).json()
        assert models["object"] == "list"
        data = models["data"][0]
        assert data["id"] == "fermata-tiny.gguf" and data["owned_by"] == "llamacpp"
        assert data["meta"]["n_ctx"] == 4096 and data["meta"]["n_ctx_train"] == 8192
        assert models["models"][0]["name"] == data["id"]


def test_props(server: Server) -> None:
    props = server.get("/props").json()
    assert props["total_slots"] == 8
    assert props["default_generation_settings"]["n_ctx"] == 4096
    assert props["default_generation_settings"]["params"]["temperature"] > 0
    assert props["deterministic"] is False
    assert "im_start" in props["chat_template"]
    assert props["eos_token"] == "<|im_end|>"
    geometry = props["context_geometry"]
    assert geometry["allocated_tokens"] == geometry["max_tokens_per_sequence"] == 4096
    assert geometry["sequence_capacity"] == 8 and geometry["cache_type_k"] == "f16"
    answer = server.post("/props", {})
    assert answer.status_code == 501 and "--props" in answer.json()["error"]["message"]


def test_slots_follow_a_request(server: Server) -> None:
    assert [slot["id"] for slot in server.slots()] == list(range(8))
    events = server.stream("/completion", {"prompt": "Tell me", "n_predict": 3000,
                                           "ignore_eos": True})
    next(events)
    busy = [slot for slot in server.slots() if slot["is_processing"]]
    assert len(busy) == 1
    assert busy[0]["next_token"][0]["has_next_token"] is True
    decoded = busy[0]["next_token"][0]["n_decoded"]
    wait_until(lambda: server.slots()[busy[0]["id"]]["next_token"][0]["n_decoded"] > decoded,
               "the count of decoded tokens to grow")
    assert "Tell me" not in server.get("/slots").text
    events.close()


def test_fail_on_no_slot(start) -> None:
    server = start("-np", "1")
    assert server.get("/slots?fail_on_no_slot=1").status_code == 200
    events = server.stream("/completion", {"prompt": "x", "n_predict": 3000, "ignore_eos": True})
    next(events)
    assert server.get("/slots?fail_on_no_slot=1").status_code == 503
    events.close()


def parse_metrics(text: str) -> dict[str, float]:
    """A strict reading: HELP and TYPE before each sample, names and numbers well-formed."""
    values: dict[str, float] = {}
    described: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# "):
            described.add(line.split()[2])
            continue
        found = re.fullmatch(r'(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?:[a-z]+="[^"]*",?)+\})?) '
                             r"(-?[0-9.e+-]+)", line)
        assert found, line
        family = re.sub(r"_(bucket|sum|count)$", "", found.group(2))
        assert family in described or found.group(2) in described
        assert found.group(1) not in values, line
        values[found.group(1)] = float(found.group(3))
    return values


def test_metrics_count_what_was_done(start) -> None:
    server = start("--metrics", "--no-warmup")
    answer = server.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert int(answer.headers["Process-Start-Time-Unix"]) > 0
    before = parse_metrics(answer.text)
    assert before["llamacpp:tokens_predicted_total"] == 0
    for prompt in ("one", "two", "three"):
        server.complete(prompt=[ord(c) for c in prompt * 5], n_predict=30, ignore_eos=True,
                        cache_prompt=False)
    after = parse_metrics(server.get("/metrics").text)
    assert after["llamacpp:tokens_predicted_total"] == 90
    assert after["llamacpp:prompt_tokens_total"] == 15 + 15 + 25
    assert after["llamacpp:predicted_tokens_seconds"] > 0
    assert after["llamacpp:requests_processing"] == after["llamacpp:requests_deferred"] == 0
    assert parse_metrics(server.get("/metrics").text)["llamacpp:predicted_tokens_seconds"] == 0


def test_metrics_have_the_names_and_types_of_llama_server(start) -> None:
    text = start("--metrics").get("/metrics").text
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    helps = dict(re.findall(r"^# HELP (\S+) (.+)$", text, re.MULTILINE))
    assert set(types) == set(helps)
    for name in ("prompt_tokens_total", "prompt_seconds_total", "tokens_predicted_total",
                 "tokens_predicted_seconds_total", "n_tokens_max", "n_decode_total",
                 "prompt_tokens_cached_total", "spec_decode_num_draft_tokens_total",
                 "spec_decode_num_accepted_tokens_total", "spec_decode_num_drafts_total",
                 "spec_decode_num_accepted_tokens_per_pos_total"):
        assert types[f"llamacpp:{name}"] == "counter"
    for name in ("prompt_tokens_seconds", "predicted_tokens_seconds", "requests_processing",
                 "requests_deferred", "n_busy_slots_per_decode"):
        assert types[f"llamacpp:{name}"] == "gauge"
    assert "nan" not in text.lower() and "inf\n" not in text.lower()


def test_texts_at_slots_are_for_those_who_ask_for_them(start) -> None:
    quiet = start("-c", "512", "-np", "1")
    quiet.complete(prompt="Count from 1 to 9.", n_predict=8, ignore_eos=True)
    assert not {"prompt", "generated"} & set(quiet.slots()[0])
    debug = start("-c", "512", "-np", "1", "--api-key", "one,two",
                  env={"LLAMA_SERVER_SLOTS_DEBUG": "1"})
    debug.headers = {"Authorization": "Bearer one"}
    assert "prompt" not in debug.slots()[0], "nobody was there yet"
    reply = debug.complete(prompt="Count from 1 to 9.", n_predict=8, ignore_eos=True)
    slot = debug.slots()[0]
    assert slot["prompt"].endswith("Count from 1 to 9.") and slot["generated"] == reply["content"]
    debug.headers = {"Authorization": "Bearer two"}
    assert not {"prompt", "generated"} & set(debug.slots()[0]), "another's"


def test_a_parked_text_is_shown_too(start) -> None:
    server = start("-c", "2048", "-np", "1", "--slots-debug")
    text = ""
    for event in server.stream("/completion", {"prompt": "Go", "n_predict": 1500,
                                               "ignore_eos": True}):
        text += event["content"]
        if text:
            assert server.post("/slots/0?action=park", None).status_code == 200
            entry = server.slots()[-1]
            assert entry["id"] == -1 and entry["prompt"].endswith("Go")
            assert entry["generated"].startswith(text)
            break


def test_replies_have_the_fields_of_llama_server(server: Server) -> None:
    props = server.get("/props").json()
    assert set(props) >= {
        "default_generation_settings", "total_slots", "model_alias", "model_ftype", "model_path",
        "modalities", "media_marker", "endpoint_slots", "endpoint_props", "endpoint_metrics", "ui",
        "ui_settings", "chat_template", "chat_template_caps", "bos_token", "eos_token",
        "build_info", "is_sleeping", "cors_proxy_enabled"}
    assert set(props["default_generation_settings"]) >= {"params", "n_ctx"}
    assert set(props["modalities"]) == {"vision", "video", "audio"}
    models = server.get("/v1/models").json()
    assert set(models["data"][0]) >= {"id", "aliases", "tags", "object", "created", "owned_by",
                                      "architecture", "meta"}
    assert set(models["data"][0]["meta"]) >= {"vocab_type", "n_vocab", "n_ctx", "n_ctx_train",
                                              "n_embd", "n_params", "size", "ftype"}
    assert set(models["models"][0]) >= {"name", "model", "modified_at", "size", "digest", "type",
                                        "description", "tags", "capabilities", "parameters",
                                        "details"}
    server.complete(prompt="x", n_predict=2, id_slot=0)
    slot = server.slots()[0]
    assert set(slot) >= {"id", "id_task", "n_ctx", "speculative", "is_processing", "params",
                         "next_token", "n_prompt_tokens", "n_prompt_tokens_processed",
                         "n_prompt_tokens_cache", "is_preempted", "n_preempt", "n_recompute",
                         "preempt_mode"}
    assert set(slot["next_token"][0]) == {"has_next_token", "has_new_line", "n_remain",
                                          "n_decoded"}


def test_slots_tell_of_a_new_line(server: Server) -> None:
    for text, shown in (("one line " * 2000, False), ("a\n" + "more " * 2000, True)):
        events = server.stream("/completion", {"prompt": "x", "grammar": force(text), "id_slot": 1,
                                               "n_predict": 3000})
        for _ in range(8):
            next(events)
        assert server.slots()[1]["next_token"][0]["has_new_line"] == shown
        events.close()
        server.check_clean()


def test_every_metric_is_documented(start, tmp_path: Path) -> None:
    text = start("--metrics", "--page-dir", str(tmp_path / "pages")).get("/metrics").text
    described = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    documented = set(re.findall(r"`((?:llamacpp:|fermata_)[a-z_]+)", METRICS.read_text()))
    assert described == documented


def test_endpoints_that_are_off_say_how_to_turn_them_on(start) -> None:
    server = start("--no-slots")
    for path, flag in (("/metrics", "--metrics"), ("/slots", "--slots")):
        answer = server.get(path)
        assert answer.status_code == 501
        error = answer.json()["error"]
        assert error["type"] == "not_supported_error"
        assert error["message"] == (f"This server does not support {path[1:]} endpoint. "
                                    f"Start it with `{flag}`")


def test_tokenize_round_trips(server: Server) -> None:
    # F5: special tokens despite parse_special false, an added space.
    for text in ("Hello:World", " x", "\n\n", "🎼 é", "", "word " * 20_000):
        tokens = server.post("/tokenize", {"content": text}).json()["tokens"]
        assert server.post("/detokenize", {"tokens": tokens}).json()["content"] == text
    special = server.post("/tokenize", {"content": "<|im_start|>"}).json()["tokens"]
    plain = server.post("/tokenize", {"content": "<|im_start|>", "parse_special": False}).json()
    assert len(special) == 1 and len(plain["tokens"]) > 1
    pieces = server.post("/tokenize", {"content": "é", "with_pieces": True}).json()["tokens"]
    assert [piece["piece"] for piece in pieces] == [[0xC3], [0xA9]]


def test_apply_template_shows_the_prompt(server: Server) -> None:
    body = {"messages": [{"role": "user", "content": "Hi <there>"}]}
    prompt = server.post("/apply-template", body).json()["prompt"]
    assert "Hi <there>" in prompt and prompt.endswith("<|im_start|>assistant\n")
    tokens = server.post("/tokenize", {"content": prompt}).json()["tokens"]
    usage = server.post("/v1/chat/completions", body | {"max_tokens": 1}).json()["usage"]
    assert usage["prompt_tokens"] == len(tokens)
