#include "api/pages.h"

#include "api/accepted.h"
#include "api/error.h"
#include "api/fields.h"
#include "api/page_export.h"
#include "api/reply_exchange.h"
#include "api/slot_actions.h"
#include "core/pages.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace fermata::api {
namespace {

constexpr std::string_view pages_path = "/pages";
constexpr std::string_view export_suffix = "/export";
constexpr std::size_t list_limit_max = 10'000;

struct NamedAction {
  std::string_view name;
  PageAction action;
};
constexpr NamedAction posted[] = {{"pin", PageAction::pin},
                                  {"unpin", PageAction::unpin},
                                  {"rename", PageAction::rename},
                                  {"fork", PageAction::fork},
                                  {"spill", PageAction::spill}};

ApiError not_found(std::string message) {
  return {.type = ErrorType::not_found, .message = std::move(message)};
}

std::optional<std::byte> hex_byte(std::string_view two) {
  unsigned value = 0;
  const auto [end, fault] = std::from_chars(two.data(), two.data() + 2, value, 16);
  if (fault != std::errc() || end != two.data() + 2) return std::nullopt;
  return static_cast<std::byte>(value);
}

Owner owner_from(std::string_view hex) {
  Owner out{};
  if (hex.size() != 2 * out.size()) throw bad_request("owner: must be 64 hex digits");
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto value = hex_byte(hex.substr(2 * i, 2));
    if (!value) throw bad_request("owner: must be 64 hex digits");
    out[i] = *value;
  }
  return out;
}

Owner read_owner(const Context& context, std::string_view query) {
  const auto text = query_value(query, "owner");
  if (!text) return context.owner;
  const Owner owner = owner_from(*text);
  if (!context.settings->security.api_keys.empty() && owner != context.owner) {
    throw ApiError{.type = ErrorType::permission,
                   .message = "owner: the pages of another key are not shown"};
  }
  return owner;
}

std::size_t read_limit(std::string_view query, std::size_t fallback) {
  const auto text = query_value(query, "limit");
  if (!text) return fallback;
  std::size_t out = 0;
  const auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), out);
  if (fault != std::errc() || end != text->data() + text->size() || out < 1 ||
      out > list_limit_max) {
    throw bad_request("limit: must be a whole number from 1 to " + std::to_string(list_limit_max));
  }
  return out;
}

PageAction read_action(const Inquiry& inquiry, bool exports) {
  if (inquiry.method == Method::get || inquiry.method == Method::head) {
    return exports ? PageAction::export_part : PageAction::get;
  }
  if (exports) throw not_found("File Not Found");
  if (inquiry.method == Method::del) return PageAction::erase;
  if (inquiry.method == Method::put) return PageAction::import;
  if (inquiry.method != Method::post) throw not_found("File Not Found");
  const std::string_view asked = query_value(inquiry.query, "action").value_or("");
  for (const auto& [name, action] : posted) {
    if (name == asked) return action;
  }
  throw bad_request("Invalid action: it must be pin, unpin, rename, fork or spill");
}

PageCommand read_command(const Context& context, Inquiry& inquiry) {
  PageCommand out;
  out.owner = read_owner(context, inquiry.query);
  if (inquiry.path == pages_path) {
    if (inquiry.method != Method::get && inquiry.method != Method::head) {
      throw not_found("File Not Found");
    }
    out.action = PageAction::list;
    out.name = query_value(inquiry.query, "prefix").value_or("");
    out.limit = read_limit(inquiry.query, out.limit);
    return out;
  }
  const bool exports = inquiry.path.ends_with(export_suffix);
  out.action = read_action(inquiry, exports);
  out.name = inquiry.path.substr(pages_path.size() + 1);
  if (exports) out.name.resize(out.name.size() - std::min(out.name.size(), export_suffix.size()));
  if (!is_page_name(out.name)) {
    throw bad_request(
        "Invalid page name: it must be 1 to 128 of A-Z a-z 0-9 . _ - and not begin with a dot");
  }
  if (out.action == PageAction::rename || out.action == PageAction::fork) {
    out.to = query_value(inquiry.query, "to").value_or("");
    if (!may_name_page(out.to)) {
      throw bad_request(
          "to: must be 1 to 128 of A-Z a-z 0-9 . _ - and not begin with a dot or with id.");
    }
  }
  if (out.action == PageAction::import) {
    if (!may_name_page(out.name)) throw bad_request("Invalid page name: id. begins no given one");
    out.body = std::move(inquiry.body);
  }
  return out;
}

Json page_json(const PageInfo& page) {
  return {{"name", page.name},
          {"named", page.is_named},
          {"tokens", page.tokens.value},
          {"bytes", {{"ram", page.ram.value}, {"disk", page.disk.value}}},
          {"pinned", page.is_pinned},
          {"reason", page.reason},
          {"kind", page.kind},
          {"created", page.created},
          {"last_used", page.last_used},
          {"fingerprint", page.fingerprint},
          {"owner", page.owner},
          {"price", page.price_seconds}};
}

ApiError error_of(const PageCommand& command, PageOutcome outcome) {
  switch (outcome) {
    case PageOutcome::missing:
      return not_found("no page is named " + command.name);
    case PageOutcome::taken:
      if (command.action == PageAction::import) {
        return {.type = ErrorType::conflict,
                .message = "another conversation is named " + command.name +
                           "; delete or rename it first, or import under another name"};
      }
      return {.type = ErrorType::conflict,
              .message = "to: another page is named " + command.to + "; delete or rename it first"};
    case PageOutcome::full:
      return {.type = ErrorType::storage_full,
              .message =
                  "there is no room in --page-dir, or --page-write-bytes-per-hour is "
                  "reached; delete or unpin pages, or raise the limits"};
    case PageOutcome::damaged:
      return not_found("page " + command.name +
                       " was damaged or is another model's, and was set aside; the log says which");
    case PageOutcome::busy:
      return {.type = ErrorType::unavailable,
              .message = "the store is busy; try again later",
              .retry_after_s = 1};
    case PageOutcome::stopping:
      return stopping();
    case PageOutcome::no_parcel:
      return bad_request(
          "the body is no page as GET /pages/{name}/export gives it: it is cut short, changed, or "
          "of a server whose cells lie otherwise (another -fa or version); export it again");
    case PageOutcome::foreign:
      return {.type = ErrorType::conflict,
              .message =
                  "the page is of another model or of other KV types than this server's; start "
                  "both with the same model, --cache-type-k and --cache-type-v"};
    case PageOutcome::unsupported:
      return {.type = ErrorType::not_supported,
              .message =
                  "pages of this model's memory, or of --no-kv-unified, cannot be imported: what "
                  "is in them cannot be checked. Copy the folder of --page-dir instead"};
    case PageOutcome::failed:
    case PageOutcome::done:
      break;
  }
  return {.type = ErrorType::server,
          .message = "--page-dir could not be changed; the log says why"};
}

Json answer_json(const PageCommand& command, const PageAnswer& answer) {
  if (command.action == PageAction::erase) return {{"deleted", true}};
  if (command.action != PageAction::list) return page_json(answer.pages.front());
  Json data = Json::array();
  for (const PageInfo& page : answer.pages) data.push_back(page_json(page));
  return {{"object", "list"}, {"data", std::move(data)}, {"total", answer.total}};
}

Piece word(const PageCommand& command, const PageAnswer& answer) {
  if (answer.outcome != PageOutcome::done) return page_error(command, answer.outcome)->pull();
  return {.head = Head{}, .body = dump(answer_json(command, answer)), .done = true};
}

}  // namespace

bool is_page_path(std::string_view path) {
  if (!path.starts_with(pages_path)) return false;
  path.remove_prefix(pages_path.size());
  return path.empty() || path.front() == '/';
}

std::unique_ptr<Exchange> page_error(const PageCommand& command, PageOutcome outcome) {
  return error_exchange(error_of(command, outcome));
}

std::unique_ptr<Exchange> page_action(const Context& context, Inquiry& inquiry) {
  if (!context.scheduler->keeps_pages()) {
    throw ApiError{.type = ErrorType::not_supported,
                   .message = "This server keeps no pages. Start it with `--page-dir`"};
  }
  PageCommand command = read_command(context, inquiry);
  if (command.action == PageAction::export_part) return page_export(context, std::move(command));
  command.reply = std::make_shared<Reply<PageAnswer>>();
  auto reply = command.reply;
  std::string body = std::move(command.body);
  PageCommand asked = command;
  asked.body = std::move(body);
  check_accepted(context.scheduler->ask(std::move(asked)), ErrorType::rate_limit,
                 "too many questions about pages wait; try again later");
  return reply_exchange<PageAnswer>(
      std::move(reply),
      [command = std::move(command)](const PageAnswer& answer) { return word(command, answer); });
}

}  // namespace fermata::api
