#include "api/slot_actions.h"

#include "api/accepted.h"
#include "api/error.h"
#include "api/fields.h"
#include "api/reply_exchange.h"
#include "api/slot_moves.h"
#include "scheduler/hold.h"

#include <charconv>
#include <string>

namespace fermata::api {
namespace {

using scheduler::HoldAction;
using scheduler::HoldCommand;
using scheduler::HoldOutcome;
using scheduler::HoldReceipt;

constexpr std::string_view slots_path = "/slots";

// All of `text` as a number.
template <class T>
std::optional<T> number(std::string_view text) {
  T out{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

ApiError not_supported(std::string message) {
  return {.type = ErrorType::not_supported, .message = std::move(message)};
}

void check_slots_are_on(const Context& context) {
  if (!context.settings->server.slots) {
    throw not_supported("This server does not support slots endpoint. Start it with `--slots`");
  }
}

void check_parking_is_on(const Context& context) {
  if (!context.settings->preempt.enabled) {
    throw not_supported("This server does not park requests. Start it without `--no-preempt`");
  }
  if (context.settings->preempt.policy == "admission-only") {
    throw not_supported(
        "This server does not park requests. Start it without `--preempt-policy admission-only`");
  }
}

HoldAction read_action(std::string_view action) {
  if (action == "park") return HoldAction::park;
  if (action == "unpark") return HoldAction::unpark;
  throw bad_request(
      "Invalid action: it must be park, unpark, save, restore, erase, page_out or page_in");
}

// "/slots" and "/slots/-1" name no slot.
std::optional<Seat> read_seat(std::string_view path, std::int32_t seats) {
  if (path == slots_path) return std::nullopt;
  const auto id = number<std::int32_t>(path.substr(slots_path.size() + 1));
  if (id == -1) return std::nullopt;
  if (!id || *id < 0 || *id >= seats) throw bad_request("Invalid slot ID");
  return Seat(*id);
}

std::optional<RequestId> read_task(std::string_view query) {
  const auto text = query_value(query, "id_task");
  if (!text) return std::nullopt;
  const auto id = number<std::uint64_t>(*text);
  if (!id) throw bad_request("id_task: must be a whole number, as /slots shows it");
  return RequestId(*id);
}

Json receipt_json(HoldAction action, const HoldReceipt& receipt) {
  Json mode = nullptr;
  if (receipt.mode) mode = *receipt.mode == policy::ParkMode::swap ? "swap" : "recompute";
  // The slot it left, or has again.
  const bool shown = receipt.seat && (action == HoldAction::park || !receipt.is_out);
  return {{"id_slot", shown ? receipt.seat->value : -1},
          {"id_task", receipt.id.value},
          {"action", action == HoldAction::park ? "park" : "unpark"},
          {"is_preempted", receipt.is_out},
          {"mode", mode},
          {"n_tokens", receipt.tokens.value},
          {"bytes", receipt.bytes.value},
          {"ms", static_cast<double>(receipt.took.value) / 1000.0}};
}

ApiError not_found(std::string message) {
  return {.type = ErrorType::not_found, .message = std::move(message)};
}

ApiError error_of(HoldAction action, const HoldCommand& command, HoldOutcome outcome) {
  const std::string slot = command.seat ? std::to_string(command.seat->value) : "";
  const std::string task = command.id ? std::to_string(command.id->value) : "";
  switch (outcome) {
    case HoldOutcome::nobody_there:
      if (action == HoldAction::park) {
        return not_found("no request runs on slot " + slot + "; /slots shows where one does");
      }
      return not_found("no request was parked from slot " + slot +
                       " by hand; name one with id_task, /slots shows the parked ones");
    case HoldOutcome::no_such_request:
      return not_found("id_task: request " + task + " has ended, or never was");
    case HoldOutcome::not_on_seat:
      return bad_request("id_task: request " + task + " is not the one of slot " + slot +
                         "; name one of the two");
    case HoldOutcome::not_parked:
      return bad_request("id_task: request " + task + " is not parked");
    case HoldOutcome::stopping:
    case HoldOutcome::done:
      break;
  }
  return stopping();
}

Piece answer(const HoldCommand& command, const HoldReceipt& receipt) {
  if (receipt.outcome != HoldOutcome::done) {
    return error_exchange(error_of(command.action, command, receipt.outcome))->pull();
  }
  return {.head = Head{}, .body = dump(receipt_json(command.action, receipt)), .done = true};
}

}  // namespace

std::optional<std::string_view> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view field = query.substr(0, end);
    if (field.starts_with(name) && field.substr(name.size()).starts_with('=')) {
      return field.substr(name.size() + 1);
    }
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
  }
  return std::nullopt;
}

bool is_slot_path(std::string_view path) {
  if (!path.starts_with(slots_path)) return false;
  path.remove_prefix(slots_path.size());
  return path.empty() || (path.size() > 1 && path.find('/') == 0 && path.rfind('/') == 0);
}

std::unique_ptr<Exchange> slot_action(const Context& context, const Inquiry& inquiry) {
  const std::string_view action = query_value(inquiry.query, "action").value_or("");
  const std::int32_t seats = context.scheduler->status().limits().seats;
  check_slots_are_on(context);
  if (const auto moves = move_action_of(action)) {
    check_can_move(context, *moves);
    const auto seat = read_seat(inquiry.path, seats);
    if (!seat) throw bad_request("Invalid slot ID");
    return move_slot(context, *moves, *seat, inquiry);
  }
  check_parking_is_on(context);
  HoldCommand command;
  command.seat = read_seat(inquiry.path, seats);
  command.action = read_action(action);
  command.id = read_task(inquiry.query);
  command.owner = context.owner;
  if (!command.seat && !command.id) {
    throw bad_request("id_task: is missing; without a slot it names the request");
  }
  command.reply = std::make_shared<scheduler::HoldReply>();
  check_accepted(context.scheduler->hold(command), ErrorType::rate_limit,
                 "too many slot actions wait for the next step; try again later");
  auto reply = command.reply;
  return reply_exchange<HoldReceipt>(std::move(reply),
                                     [command = std::move(command)](const HoldReceipt& receipt) {
                                       return answer(command, receipt);
                                     });
}

}  // namespace fermata::api
