#include "api/slot_moves.h"

#include "api/accepted.h"
#include "api/error.h"
#include "api/fields.h"
#include "api/reply_exchange.h"
#include "api/slot_actions.h"
#include "core/pages.h"

#include <string>
#include <utility>

namespace fermata::api {
namespace {

struct NamedAction {
  std::string_view name;
  SlotAction action;
};
constexpr NamedAction actions[] = {{"save", SlotAction::save},
                                   {"restore", SlotAction::restore},
                                   {"erase", SlotAction::erase},
                                   {"page_out", SlotAction::page_out},
                                   {"page_in", SlotAction::page_in}};

bool is_paged(SlotAction action) {
  return action == SlotAction::page_out || action == SlotAction::page_in;
}

std::string read_name(SlotAction action, const Inquiry& inquiry) {
  if (action == SlotAction::erase) return {};
  if (is_paged(action)) {
    std::string page(query_value(inquiry.query, "page").value_or(""));
    const bool is_new = action == SlotAction::page_out;
    if (is_new ? may_name_page(page) : is_page_name(page)) return page;
    throw bad_request(
        "page: must be 1 to 128 of A-Z a-z 0-9 . _ - and not begin with a dot or, for page_out, "
        "with id.");
  }
  const Json body = parse_object(inquiry.body);
  std::string name = Fields(body).string("filename", "");
  if (!is_slot_file_name(name)) throw bad_request("Invalid filename");
  return name;
}

ApiError not_found(std::string message) {
  return {.type = ErrorType::not_found, .message = std::move(message)};
}

ApiError restore_error(SlotOutcome outcome) {
  const std::string what = "Unable to restore slot: ";
  switch (outcome) {
    case SlotOutcome::other_version:
      return bad_request(what + "Unsupported server tokens state version");
    case SlotOutcome::too_long:
      return bad_request(what + "Restored prompt does not fit in the slot context");
    default:
      return bad_request(what + "No available space in KV cache or invalid slot save file");
  }
}

ApiError error_of(const SlotCommand& command, SlotOutcome outcome) {
  const bool saves = command.action == SlotAction::save;
  const std::string slot = "slot " + std::to_string(command.seat.value);
  switch (outcome) {
    case SlotOutcome::empty:
      return saves ? bad_request("Unable to save slot: " + slot + " holds no conversation")
                   : not_found(slot + " holds no conversation");
    case SlotOutcome::missing:
      return not_found("no page is named " + command.name);
    case SlotOutcome::other_model:
      return bad_request("page " + command.name + " is of another model or KV type; it was kept");
    case SlotOutcome::taken:
      return {.type = ErrorType::conflict,
              .message = "page: another conversation is named " + command.name +
                         "; delete or rename it first"};
    case SlotOutcome::full:
      return {.type = ErrorType::storage_full,
              .message = saves ? "Unable to save slot: the disk is full"
                               : "there is no room in --page-dir; delete or unpin pages, or raise "
                                 "its limits"};
    case SlotOutcome::busy:
      return {.type = ErrorType::unavailable,
              .message = "too many slots are being moved; try again later",
              .retry_after_s = 1};
    case SlotOutcome::no_engine:
      return no_engine();
    case SlotOutcome::no_seat:
      return bad_request("Invalid slot ID");
    case SlotOutcome::stopping:
      return stopping();
    case SlotOutcome::unsupported:
      return {.type = ErrorType::not_supported,
              .message =
                  "the cells of this model or layout cannot be written to llama-server's "
                  "files; keep the conversation with --page-dir and action=page_out"};
    default:
      break;
  }
  if (command.action == SlotAction::restore) return restore_error(outcome);
  if (saves) return {.type = ErrorType::server, .message = "Unable to save slot; the log says why"};
  if (outcome == SlotOutcome::too_long) {
    return bad_request("page " + command.name + " is longer than a slot can be; it was kept");
  }
  if (outcome == SlotOutcome::no_room) {
    return bad_request("page: there is no room in --cache-ram to move it; raise that");
  }
  return {.type = ErrorType::server, .message = "the page could not be moved; the log says why"};
}

Json answer_json(const SlotCommand& command, const SlotAnswer& answer) {
  const double ms = static_cast<double>(answer.took.value) / 1000.0;
  Json out = {{"id_slot", command.seat.value}};
  switch (command.action) {
    case SlotAction::save:
      out["filename"] = command.name;
      out["n_saved"] = answer.tokens.value;
      out["n_written"] = answer.bytes.value;
      out["timings"] = {{"save_ms", ms}};
      break;
    case SlotAction::restore:
      out["filename"] = command.name;
      out["n_restored"] = answer.tokens.value;
      out["n_read"] = answer.bytes.value;
      out["timings"] = {{"restore_ms", ms}};
      break;
    case SlotAction::erase:
      out["n_erased"] = answer.tokens.value;
      break;
    case SlotAction::page_out:
    case SlotAction::page_in:
      out["page"] = command.name;
      out["n_tokens"] = answer.tokens.value;
      out["bytes"] = answer.bytes.value;
      out["tier"] = answer.tier;
      out["ms"] = ms;
      break;
  }
  return out;
}

Piece word(const SlotCommand& command, const SlotAnswer& answer) {
  if (answer.outcome != SlotOutcome::done) {
    return error_exchange(error_of(command, answer.outcome))->pull();
  }
  return {.head = Head{}, .body = dump(answer_json(command, answer)), .done = true};
}

}  // namespace

std::optional<SlotAction> move_action_of(std::string_view name) {
  for (const auto& [known, action] : actions) {
    if (known == name) return action;
  }
  return std::nullopt;
}

void check_can_move(const Context& context, SlotAction action) {
  if (is_paged(action)) {
    if (context.scheduler->keeps_pages()) return;
    throw ApiError{.type = ErrorType::not_supported,
                   .message = "This server keeps no pages. Start it with `--page-dir`"};
  }
  if (!context.settings->server.slot_save_path.empty()) return;
  throw ApiError{
      .type = ErrorType::not_supported,
      .message = "This server does not support slots action. Start it with `--slot-save-path`"};
}

std::unique_ptr<Exchange> move_slot(const Context& context, SlotAction action, Seat seat,
                                    const Inquiry& inquiry) {
  SlotCommand command;
  command.action = action;
  command.seat = seat;
  command.owner = context.owner;
  command.name = read_name(action, inquiry);
  command.reply = std::make_shared<Reply<SlotAnswer>>();
  auto reply = command.reply;
  check_accepted(context.scheduler->ask(command), ErrorType::rate_limit,
                 "too many slot actions wait for the next step; try again later");
  return reply_exchange<SlotAnswer>(
      std::move(reply),
      [command = std::move(command)](const SlotAnswer& answer) { return word(command, answer); });
}

}  // namespace fermata::api
