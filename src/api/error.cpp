#include "api/error.h"

#include "base/check.h"

#include <nlohmann/json.hpp>

namespace fermata::api {
namespace {

struct Named {
  int status;
  const char* name;
};

Named named(ErrorType type) {
  switch (type) {
    case ErrorType::invalid_request:
      return {400, "invalid_request_error"};
    case ErrorType::authentication:
      return {401, "authentication_error"};
    case ErrorType::permission:
      return {403, "permission_error"};
    case ErrorType::not_found:
      return {404, "not_found_error"};
    case ErrorType::exceed_context:
      return {400, "exceed_context_size_error"};
    case ErrorType::conflict:
      return {409, "invalid_request_error"};
    case ErrorType::rate_limit:
      return {429, "rate_limit_error"};
    case ErrorType::server:
      return {500, "server_error"};
    case ErrorType::not_supported:
      return {501, "not_supported_error"};
    case ErrorType::unavailable:
      return {503, "unavailable_error"};
    case ErrorType::storage_full:
      return {507, "server_error"};
  }
  return {500, "server_error"};
}

}  // namespace

int status_of(ErrorType type) { return named(type).status; }

std::string error_json(const ApiError& error) {
  nlohmann::ordered_json inner = {{"code", named(error.type).status},
                                  {"message", error.message},
                                  {"type", named(error.type).name}};
  if (error.type == ErrorType::exceed_context) {
    inner["n_prompt_tokens"] = error.prompt_tokens.value;
    inner["n_ctx"] = error.window.value;
  }
  const nlohmann::ordered_json outer = {{"error", inner}};
  return outer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::unique_ptr<Exchange> error_exchange(const ApiError& error) {
  Head head;
  head.status = status_of(error.type);
  if (error.retry_after_s) {
    head.headers.emplace_back("Retry-After", std::to_string(*error.retry_after_s));
  }
  if (error.type == ErrorType::authentication) {
    head.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  return ready_exchange(std::move(head), error_json(error));
}

ApiError bad_request(std::string message) {
  return {.type = ErrorType::invalid_request, .message = std::move(message)};
}

ApiError exceeds_context(Tokens prompt, Tokens window) {
  return {.type = ErrorType::exceed_context,
          .message = "request (" + std::to_string(prompt.value) +
                     " tokens) exceeds the available context size (" +
                     std::to_string(window.value) + " tokens), try increasing it",
          .prompt_tokens = prompt,
          .window = window};
}

ApiError no_engine() {
  return {.type = ErrorType::unavailable,
          .message = "no context could be built; the log says why, and it is tried again",
          .retry_after_s = 10};
}

ApiError error_of(const FinalEvent& final) {
  switch (final.failure) {
    case FailureKind::larger_than_window:
      return exceeds_context(final.prompt_tokens, final.window);
    case FailureKind::no_such_seat:
      return bad_request("id_slot: Invalid slot ID");
    case FailureKind::sampler_failed:
      return bad_request("grammar: no token of the vocabulary satisfies it at this point");
    case FailureKind::pool_full:
      return {.type = ErrorType::server, .message = "Context size has been exceeded."};
    case FailureKind::engine_broken:
      return {.type = ErrorType::server,
              .message = "the library failed while computing this request; try it again"};
    case FailureKind::no_engine:
      return no_engine();
    case FailureKind::stopping:
      return {.type = ErrorType::unavailable,
              .message = "the server is shutting down",
              .retry_after_s = 1};
    case FailureKind::none:
      break;
  }
  FERMATA_CHECK(false, "an error of a request that did not fail");
}

}  // namespace fermata::api
