#include "api/reconfigure.h"

#include "api/accepted.h"
#include "api/error.h"
#include "api/fields.h"
#include "api/reply_exchange.h"
#include "api/text.h"

#include <string_view>
#include <utility>

namespace fermata::api {
namespace {

using reconfigure::Change;
using reconfigure::Receipt;
using reconfigure::RefusalKind;

constexpr std::size_t reason_bytes_max = 256;

std::optional<KvType> read_type(const Fields& fields, std::string_view field) {
  if (!fields.has(field)) return std::nullopt;
  const std::string text = fields.string(field, "");
  const auto type = kv_type_from(text);
  if (!type) {
    throw bad_request(std::string(field) +
                      ": must be one of f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1");
  }
  return type;
}

Change read_change(const std::string& body) {
  const Json json = parse_object(body);
  const Fields fields(json);
  Change out;
  if (fields.has("n_ctx")) out.n_ctx = Tokens(fields.integer("n_ctx", 0, 2, n_ctx_max.value));
  if (fields.has("n_parallel")) {
    out.n_parallel = static_cast<std::int32_t>(fields.integer("n_parallel", 1, 1, n_parallel_max));
  }
  out.cache_type_k = read_type(fields, "cache_type_k");
  out.cache_type_v = read_type(fields, "cache_type_v");
  if (fields.has("kv_unified")) {
    out.layout = fields.boolean("kv_unified", true) ? Layout::pooled : Layout::split;
  }
  out.force = fields.boolean("force", false);
  out.dry_run = fields.boolean("dry_run", false);
  out.reason = fields.string("reason", "");
  if (out.reason.size() > reason_bytes_max) {
    throw bad_request("reason: must have at most 256 bytes");
  }
  if (!out.n_ctx && !out.n_parallel && !out.cache_type_k && !out.cache_type_v && !out.layout) {
    throw bad_request(
        "nothing is to change: give n_ctx, n_parallel, cache_type_k, cache_type_v or kv_unified");
  }
  return out;
}

double ms(Micros time) { return static_cast<double>(time.value) / 1000.0; }

Json geometry_json(const Geometry& geometry) {
  return {{"n_ctx", geometry.n_ctx.value},
          {"n_parallel", geometry.n_parallel},
          {"cache_type_k", name(geometry.cache_type_k)},
          {"cache_type_v", name(geometry.cache_type_v)},
          {"kv_unified", geometry.layout == Layout::pooled}};
}

Json fates_json(const Receipt& receipt) {
  Json out = Json::array();
  for (const reconfigure::SequenceFate& fate : receipt.fates) {
    Json id = nullptr;
    if (fate.id) id = fate.id->value;
    out.push_back({{"id_slot", fate.seat ? fate.seat->value : -1},
                   {"id_task", std::move(id)},
                   {"page", nullptr},
                   {"n_tokens", fate.tokens.value},
                   {"bytes", fate.bytes.value},
                   {"fate", reconfigure::name(fate.fate)},
                   {"reason", reconfigure::name(fate.reason)}});
  }
  return out;
}

Json receipt_json(const Receipt& receipt) {
  Json available = nullptr;
  if (receipt.cost.available) available = receipt.cost.available->value;
  return {{"version", receipt.version},
          {"reason", receipt.reason},
          {"path", reconfigure::name(receipt.path)},
          {"dry_run", receipt.dry_run},
          {"rolled_back", receipt.outcome == Receipt::Outcome::rolled_back},
          {"cold_start", false},
          {"before", geometry_json(receipt.before)},
          {"after", geometry_json(receipt.after)},
          {"t_queue_ms", ms(receipt.queue)},
          {"t_build_ms", ms(receipt.build)},
          {"t_drain_ms", 0.0},
          {"t_page_out_ms", ms(receipt.page_out)},
          {"t_free_ms", ms(receipt.free)},
          {"t_init_ms", ms(receipt.init)},
          {"t_page_in_ms", ms(receipt.page_in)},
          {"t_pause_ms", ms(receipt.pause)},
          {"t_total_ms", ms(receipt.total)},
          {"bytes_moved", receipt.moved.value},
          {"bytes_needed", receipt.cost.needed.value},
          {"bytes_available", std::move(available)},
          {"pages", fates_json(receipt)}};
}

// The receipt with an error in it.
Piece conflict(const Receipt& receipt, const std::string& message) {
  Json out = receipt_json(receipt);
  out["error"] = {{"code", 409}, {"message", message}, {"type", "conflict_error"}};
  Json requests = Json::array();
  for (const RequestId id : receipt.refusal.requests) requests.push_back(id.value);
  out["requests"] = std::move(requests);
  Head head;
  head.status = 409;
  return {.head = std::move(head), .body = dump(out), .done = true};
}

Piece answer(const Receipt& receipt) {
  switch (receipt.outcome) {
    case Receipt::Outcome::refused:
      if (receipt.refusal.kind == RefusalKind::nonsense) {
        return error_exchange(bad_request(receipt.refusal.message))->pull();
      }
      return conflict(receipt, receipt.refusal.message);
    case Receipt::Outcome::rolled_back:
      return conflict(receipt,
                      "the change was undone, and the old context serves on: " + receipt.failure);
    case Receipt::Outcome::stopping:
      return error_exchange(stopping())->pull();
    case Receipt::Outcome::done:
      break;
  }
  return {.head = Head{}, .body = dump(receipt_json(receipt)), .done = true};
}

std::unique_ptr<Exchange> begin(Change change, const Context& context) {
  auto reply = std::make_shared<scheduler::ChangeReply>();
  scheduler::ChangeCommand command{.change = std::move(change), .reply = reply};
  check_accepted(context.scheduler->reconfigure(std::move(command)), ErrorType::unavailable,
                 "another reconfigure is under way; try again later");
  return reply_exchange<Receipt>(std::move(reply), answer);
}

}  // namespace

std::unique_ptr<Exchange> reconfigure(const std::string& body, const Context& context) {
  try {
    return begin(read_change(body), context);
  } catch (const ApiError&) {
    context.scheduler->count_failed_change();
    throw;
  }
}

std::unique_ptr<Exchange> last_reconfigure(const Context& context) {
  const scheduler::Status status = context.scheduler->status().read();
  Json last = nullptr;
  if (status.last_change) last = receipt_json(*status.last_change);
  return ready_exchange(Head{}, dump({{"version", status.version},
                                      {"is_running", status.is_changing},
                                      {"stage", status.change_stage},
                                      {"last", std::move(last)}}));
}

}  // namespace fermata::api
