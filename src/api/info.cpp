#include "api/info.h"

#include "api/error.h"
#include "api/fields.h"
#include "api/sampling_fields.h"

#include <algorithm>
#include <array>

namespace fermata::api {
namespace {

std::unique_ptr<Exchange> json_answer(const Json& json) {
  return ready_exchange(Head{}, dump(json));
}

Json model_meta(const Context& context) {
  const engine::ModelInfo& model = *context.model;
  return {{"vocab_type", model.vocab_type},
          {"n_vocab", model.n_vocab},
          {"n_ctx", context.scheduler->status().limits().window.value},
          {"n_ctx_train", model.trained_window.value},
          {"n_embd", model.n_embd},
          {"n_params", model.n_params},
          {"size", model.size.value},
          {"ftype", model.file_type}};
}

Json default_generation_settings(const Context& context) {
  Json params = sampling_json(default_sampling(context.settings->sampling));
  params["n_predict"] = context.settings->batch.n_predict.value;
  return {{"params", params}, {"n_ctx", context.scheduler->status().limits().window.value}};
}

Json parking_fields(bool is_parked, std::int32_t swaps, std::int32_t recomputes, Json mode) {
  return {{"is_preempted", is_parked},
          {"n_preempt", swaps + recomputes},
          {"n_recompute", recomputes},
          {"preempt_mode", std::move(mode)}};
}

Json park_mode(const scheduler::ParkedStatus& parked) {
  if (parked.is_queued) return nullptr;
  return parked.is_swapped ? "swap" : "recompute";
}

// Where texts are shown (--slots-debug), to whom they belong.
void add_texts(const Context& context, const Request& request, const std::string& text, Json& out) {
  if (!context.settings->server.slots_debug || request.owner != context.owner) return;
  out["prompt"] = context.vocabulary->detokenize(request.prompt);
  out["generated"] = text;
}

// A request that waits out of the pool, as an entry behind the slots.
Json parked_json(const Context& context, const scheduler::ParkedStatus& parked,
                 const engine::EngineLimits& limits) {
  Json out = {{"id", -1},
              {"id_task", parked.request->id.value},
              {"n_ctx", limits.window.value},
              {"speculative", false},
              {"is_processing", false},
              {"n_prompt_tokens", parked.cells.value},
              {"next_token", Json::array({{{"has_next_token", true},
                                           {"has_new_line", parked.has_new_line},
                                           {"n_remain", parked.remaining.value},
                                           {"n_decoded", parked.predicted.value}}})}};
  out.update(parking_fields(true, parked.swaps, parked.recomputes, park_mode(parked)));
  out["is_held"] = parked.is_held;
  add_texts(context, *parked.request, parked.text, out);
  return out;
}

Json slot_json(const Context& context, const scheduler::SeatStatus& seat,
               const engine::EngineLimits& limits) {
  const bool busy = seat.is_processing;
  const std::int64_t decoded = busy ? seat.predicted.value : 0;
  Json params = Json::object();
  if (seat.request) {
    // What it was asked, never what it was asked about: no text of a conversation.
    params = sampling_json(seat.request->sampling);
    params.erase("grammar");
    params["n_predict"] = seat.request->max_tokens.value;
  }
  Json next = {{"has_next_token", busy},
               {"has_new_line", busy && seat.has_new_line},
               {"n_remain", busy ? seat.remaining.value : 0},
               {"n_decoded", decoded}};
  Json out = {{"id", seat.seat.value},
              {"n_ctx", limits.window.value},
              {"speculative", false},
              {"is_processing", busy}};
  out.update(parking_fields(false, busy ? seat.swaps : 0, busy ? seat.recomputes : 0, nullptr));
  if (seat.request) {
    out["id_task"] = seat.request->id.value;
    out["n_prompt_tokens"] = seat.resident.value;
    out["n_prompt_tokens_processed"] = seat.prompt_processed.value;
    out["n_prompt_tokens_cache"] = seat.prompt_cached.value;
    out["params"] = params;
    add_texts(context, *seat.request, seat.text, out);
  }
  out["next_token"] = Json::array({next});
  return out;
}

double seconds(std::uint64_t us) { return static_cast<double>(us) / 1e6; }
double as_double(std::uint64_t n) { return static_cast<double>(n); }

void write_llama_names(Exposition& out, const scheduler::SchedulerStats& stats,
                       const scheduler::Status& status, const ScrapeWindow::Rates& rates) {
  out.counter("llamacpp:prompt_tokens_total", "Number of prompt tokens processed.",
              as_double(stats.prompt_tokens.value()));
  out.counter("llamacpp:prompt_tokens_cached_total", "Number of prompt tokens reused from cells.",
              as_double(stats.prompt_tokens_cached.value()));
  out.counter("llamacpp:prompt_seconds_total", "Prompt process time.",
              seconds(stats.prompt_us.value()));
  out.counter("llamacpp:tokens_predicted_total", "Number of generation tokens processed.",
              as_double(stats.predicted_tokens.value()));
  out.counter("llamacpp:tokens_predicted_seconds_total", "Predict process time.",
              seconds(stats.predicted_us.value()));
  out.counter("llamacpp:n_decode_total", "Total number of steps of the engine.",
              as_double(stats.steps.value()));
  out.counter("llamacpp:n_tokens_max", "Largest number of tokens one sequence has held.",
              static_cast<double>(stats.tokens_max.value()));
  out.gauge("llamacpp:prompt_tokens_seconds", "Prompt throughput since the last scrape, tokens/s.",
            rates.prompt_per_second);
  out.gauge("llamacpp:predicted_tokens_seconds",
            "Generation throughput since the last scrape, tokens/s.", rates.predicted_per_second);
  out.gauge("llamacpp:requests_processing", "Number of requests processing.",
            static_cast<double>(status.n_processing));
  out.gauge("llamacpp:requests_deferred", "Number of requests waiting for a slot or for room.",
            static_cast<double>(status.n_waiting));
  for (const std::string_view name :
       {"llamacpp:spec_decode_num_drafts_total", "llamacpp:spec_decode_num_draft_tokens_total",
        "llamacpp:spec_decode_num_accepted_tokens_total"}) {
    out.counter(name, "Speculation; 0, nothing is drafted here yet.", 0);
  }
  out.counter("llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
              "Accepted tokens by place in the draft; 0, nothing is drafted here yet.", 0,
              {{"position", "0"}});
  const double steps = as_double(std::max<std::uint64_t>(stats.steps.value(), 1));
  out.gauge("llamacpp:n_busy_slots_per_decode", "Average number of busy slots in a step.",
            as_double(stats.busy_seats_in_steps.value()) / steps);
}

void write_parking(Exposition& out, const scheduler::SchedulerStats& stats) {
  const double swaps = as_double(stats.parks_swap.value());
  const double recomputes = as_double(stats.parks_recompute.value());
  out.counter("llamacpp:n_preempt_total", "Requests parked.", swaps + recomputes);
  out.counter("llamacpp:n_preempt_swap_total", "Requests parked with their exact bytes.", swaps);
  out.counter("llamacpp:n_preempt_recompute_total", "Requests parked to be computed again.",
              recomputes);
  out.counter("llamacpp:n_resume_total", "Parked requests resumed.",
              as_double(stats.resumes.value()));
  out.counter("llamacpp:n_recompute_tokens_total", "Tokens computed again after a park.",
              as_double(stats.recomputed_tokens.value()));
  out.gauge("llamacpp:requests_preempted", "Requests that are parked now.",
            static_cast<double>(stats.parked.value()));
  out.gauge("llamacpp:preempt_ram_bytes", "RAM that parked requests hold.",
            static_cast<double>(stats.parked_bytes.value()));
  out.gauge("fermata_requests_held", "Requests that an operator keeps out of the pool.",
            static_cast<double>(stats.held.value()));
  out.gauge("fermata_parked_bytes", "Bytes of parked requests, by where they wait.",
            static_cast<double>(stats.parked_bytes.value()), {{"tier", "ram"}});
  out.gauge("fermata_parked_bytes", "Bytes of parked requests, by where they wait.",
            static_cast<double>(stats.spilled_bytes.value()), {{"tier", "disk"}});
  out.gauge("fermata_passing_bytes", "RAM of parked requests on their way to disk and back.",
            static_cast<double>(stats.passing_bytes.value()));
  out.counter("fermata_spills_total", "Parked requests whose bytes went to disk.",
              as_double(stats.spilled.value()));
  out.counter("fermata_spills_back_total", "And came back from there.",
              as_double(stats.unspilled.value()));
  out.counter("fermata_spills_lost_total", "And were not to be had: computed again.",
              as_double(stats.spills_lost.value()));
  out.gauge("fermata_mirrored_bytes", "Bytes of copies of requests that still run.",
            static_cast<double>(stats.mirrored_bytes.value()));
  out.counter("fermata_blocks_mirrored_total", "Blocks of running requests copied ahead of a park.",
              as_double(stats.blocks_mirrored.value()));
}

void write_parks_by_reason(Exposition& out, const scheduler::SchedulerStats& stats) {
  constexpr std::array<std::string_view, policy::park_reasons> reasons = {
      "pressure", "forced", "rotation",    "priority",
      "unread",   "manual", "last_resort", "reconfigure"};
  const auto write = [&](std::string_view mode, const auto& counts) {
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      out.counter("fermata_parks_total", "Requests parked, by what became of their cells and why.",
                  as_double(counts[i].value()), {{"mode", mode}, {"reason", reasons[i]}});
    }
  };
  write("swap", stats.swaps_by_reason);
  write("recompute", stats.recomputes_by_reason);
}

void write_changes(Exposition& out, const scheduler::SchedulerStats& stats,
                   const scheduler::Status& status) {
  out.counter("llamacpp:reconfigure_total", "Changes of the geometry.",
              as_double(stats.changes.value()));
  out.counter("llamacpp:reconfigure_failed_total", "Such changes that were refused or undone.",
              as_double(stats.changes_failed.value()));
  out.gauge("fermata_geometry_version", "Of the geometry in force, 1 at the start.",
            static_cast<double>(status.version));
}

void write_sleep(Exposition& out, const scheduler::SchedulerStats& stats, scheduler::Depth depth) {
  out.gauge("fermata_sleep_depth", "0: awake, 1: without a context, 2: without weights too.",
            static_cast<double>(depth));
  out.counter("fermata_sleeps_total", "How often the context was released after idle time.",
              as_double(stats.sleeps.value()));
  out.counter("fermata_wakes_total", "How often a request brought it back.",
              as_double(stats.wakes.value()));
  out.gauge("fermata_sleep_released_bytes", "Memory that the last falling asleep gave back.",
            static_cast<double>(stats.slept_off.value()));
  out.histogram("fermata_wake_seconds", "From the first request to the context's being there.",
                stats.wake_time);
}

void write_cache(Exposition& out, const scheduler::SchedulerStats& stats) {
  const auto counter = [&](const char* name, const char* help, const Gauge& count) {
    out.counter(name, help, static_cast<double>(count.value()));
  };
  out.gauge("fermata_cache_bytes",
            "Bytes of conversations that nobody computes, by where they are.",
            static_cast<double>(stats.cached_bytes.value()), {{"tier", "ram"}});
  out.gauge("fermata_cache_conversations", "Conversations kept out of the pool.",
            static_cast<double>(stats.cached_conversations.value()), {{"tier", "ram"}});
  counter("fermata_cache_stored_total", "Conversations put there.", stats.cache_stored);
  counter("fermata_cache_hits_total", "Requests that went on from one.", stats.cache_hits);
  counter("fermata_cache_superseded_total", "Conversations that gave way to their continuation.",
          stats.cache_superseded);
  counter("fermata_cache_evicted_total", "Conversations dropped for want of room.",
          stats.cache_evicted);
  out.counter("fermata_cache_tokens_total", "Prompt tokens that came back from there.",
              as_double(stats.cache_tokens.value()));
  out.histogram("fermata_cache_copy_seconds", "Bringing one conversation back into the pool.",
                stats.cache_in);
}

void write_times(Exposition& out, const scheduler::SchedulerStats& stats) {
  out.histogram("fermata_park_copy_seconds", "Copying the cells of one park out of the pool.",
                stats.swap_out);
  out.histogram("fermata_resume_copy_seconds", "Copying the cells of one park back into the pool.",
                stats.swap_in);
  out.histogram("fermata_parked_seconds", "From a park to its resume.", stats.parked_time);
  out.histogram("fermata_queue_seconds", "From the arrival of a request to its admission.",
                stats.queue_time);
}

void write_own_names(Exposition& out, const scheduler::SchedulerStats& stats,
                     const scheduler::Status& status) {
  out.gauge("fermata_cells", "Cells of the KV pool.",
            static_cast<double>(status.limits.cells.value));
  out.gauge("fermata_cells_used", "Cells that hold a token, shared ones counted once.",
            static_cast<double>(status.cells_used.value));
  out.counter("fermata_requests_accepted_total", "Requests taken into the queue.",
              as_double(stats.requests_accepted.value()));
  out.counter("fermata_requests_refused_total", "Requests answered 429: the queue was full.",
              as_double(stats.requests_refused_full.value()));
  out.counter("fermata_requests_finished_total", "Requests that got their final event.",
              as_double(stats.requests_finished.value()));
  out.counter("fermata_requests_cancelled_total", "Requests whose client went away.",
              as_double(stats.requests_cancelled.value()));
  out.counter("fermata_requests_failed_total", "Requests that ended in an error.",
              as_double(stats.requests_failed.value()));
  out.counter("fermata_seats_evicted_total", "Idle conversations dropped to make room.",
              as_double(stats.seats_evicted.value()));
  out.counter("fermata_embedded_tokens_total", "Tokens of texts that became vectors.",
              as_double(stats.embedded_tokens.value()));
  out.counter("fermata_context_shifts_total", "Full windows that lost tokens to go on.",
              as_double(stats.context_shifts.value()));
  out.counter("fermata_steps_seconds_total", "Time in the engine's steps.",
              seconds(stats.steps_us.value()));
  out.counter("fermata_tick_seconds_total", "Time of the scheduler outside the engine's steps.",
              seconds(stats.tick_us.value()));
  out.counter("fermata_steps_no_room_total", "Steps for which the engine had no room.",
              as_double(stats.no_room_steps.value()));
  out.counter("fermata_steps_broken_total", "Steps in which the library failed.",
              as_double(stats.broken_steps.value()));
}

}  // namespace

ScrapeWindow::Rates ScrapeWindow::next(const scheduler::SchedulerStats& stats) {
  const std::lock_guard lock(mutex_);
  const auto rate = [](std::uint64_t tokens, std::uint64_t& last_tokens, std::uint64_t us,
                       std::uint64_t& last_us) {
    const std::uint64_t n = tokens - last_tokens, t = us - last_us;
    last_tokens = tokens;
    last_us = us;
    return t > 0 ? as_double(n) / seconds(t) : 0.0;
  };
  Rates out;
  out.prompt_per_second =
      rate(stats.prompt_tokens.value(), prompt_tokens_, stats.prompt_us.value(), prompt_us_);
  out.predicted_per_second = rate(stats.predicted_tokens.value(), predicted_tokens_,
                                  stats.predicted_us.value(), predicted_us_);
  return out;
}

std::unique_ptr<Exchange> health() { return ready_exchange(Head{}, R"({"status":"ok"})"); }

std::unique_ptr<Exchange> models(const Context& context) {
  const engine::ModelInfo& model = *context.model;
  const Json details = {{"parent_model", ""},           {"format", "gguf"},
                        {"family", model.architecture}, {"families", Json::array({""})},
                        {"parameter_size", ""},         {"quantization_level", model.file_type}};
  const Json ollama = {{"name", context.model_name},
                       {"model", context.model_name},
                       {"modified_at", ""},
                       {"size", ""},
                       {"digest", ""},
                       {"type", "model"},
                       {"description", model.description},
                       {"tags", Json::array({""})},
                       {"capabilities", Json::array({"completion"})},
                       {"parameters", ""},
                       {"details", details}};
  const Json openai = {
      {"id", context.model_name},
      {"aliases", context.settings->model.aliases},
      {"tags", Json::array()},
      {"object", "model"},
      {"created", context.started},
      {"owned_by", "llamacpp"},
      {"architecture",
       {{"input_modalities", Json::array({"text"})}, {"output_modalities", Json::array({"text"})}}},
      {"meta", model_meta(context)}};
  return json_answer(
      {{"models", Json::array({ollama})}, {"object", "list"}, {"data", Json::array({openai})}});
}

std::unique_ptr<Exchange> props(const Context& context) {
  const settings::ServerSettings& server = context.settings->server;
  const engine::Vocabulary& vocabulary = *context.vocabulary;
  const scheduler::Status status = context.scheduler->status().read();
  const auto token_text = [&](const std::optional<TokenId>& token) {
    return token ? std::string(vocabulary.piece_with_special(*token)) : std::string();
  };
  Json caps = Json::object();
  for (const auto& [name, value] : vocabulary.chat_template_caps()) caps[name] = value;
  return json_answer({{"default_generation_settings", default_generation_settings(context)},
                      {"total_slots", status.limits.seats},
                      {"model_alias", context.model_name},
                      {"model_path", context.model->path},
                      {"model_ftype", context.model->file_type},
                      {"modalities", {{"vision", false}, {"video", false}, {"audio", false}}},
                      {"media_marker", nullptr},
                      {"endpoint_slots", server.slots},
                      {"endpoint_props", server.props},
                      {"endpoint_metrics", server.metrics},
                      {"ui", false},
                      {"ui_settings", Json::object()},
                      {"chat_template", vocabulary.chat_template()},
                      {"chat_template_caps", caps},
                      {"bos_token", token_text(vocabulary.special().bos)},
                      {"eos_token", token_text(vocabulary.special().eos)},
                      {"build_info", context.build},
                      {"is_sleeping", status.depth != scheduler::Depth::awake},
                      {"deterministic", context.settings->context.deterministic},
                      {"cors_proxy_enabled", false},
                      {"context_geometry",
                       {{"allocated_tokens", status.limits.cells.value},
                        {"max_tokens_per_sequence", status.limits.window.value},
                        {"sequence_capacity", status.limits.seats},
                        {"cache_type_k", name(status.geometry.cache_type_k)},
                        {"cache_type_v", name(status.geometry.cache_type_v)},
                        {"kv_unified", status.geometry.layout == Layout::pooled},
                        {"version", status.version}}}});
}

std::unique_ptr<Exchange> slots(const Context& context, bool fail_on_no_slot) {
  if (!context.settings->server.slots) {
    throw ApiError{
        .type = ErrorType::not_supported,
        .message = "This server does not support slots endpoint. Start it with `--slots`"};
  }
  const scheduler::Status status = context.scheduler->status().read();
  if (fail_on_no_slot && status.n_processing >= status.limits.seats) {
    throw ApiError{.type = ErrorType::unavailable, .message = "no slot available"};
  }
  Json out = Json::array();
  for (const scheduler::SeatStatus& seat : status.seats) {
    out.push_back(slot_json(context, seat, status.limits));
  }
  for (const scheduler::ParkedStatus& parked : status.parked) {
    out.push_back(parked_json(context, parked, status.limits));
  }
  return json_answer(out);
}

std::unique_ptr<Exchange> metrics(const Context& context, ScrapeWindow& window) {
  if (!context.settings->server.metrics) {
    throw ApiError{
        .type = ErrorType::not_supported,
        .message = "This server does not support metrics endpoint. Start it with `--metrics`"};
  }
  const scheduler::SchedulerStats& stats = context.scheduler->stats();
  const scheduler::Status status = context.scheduler->status().read();
  Exposition out;
  write_llama_names(out, stats, status, window.next(stats));
  write_parking(out, stats);
  write_parks_by_reason(out, stats);
  write_cache(out, stats);
  write_changes(out, stats, status);
  write_sleep(out, stats, status.depth);
  if (context.more_metrics) context.more_metrics(out);
  write_times(out, stats);
  write_own_names(out, stats, status);
  Head head;
  head.content_type = "text/plain; version=0.0.4";
  head.headers.emplace_back("Process-Start-Time-Unix", std::to_string(context.started));
  return ready_exchange(std::move(head), out.text());
}

}  // namespace fermata::api
