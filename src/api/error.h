// What goes wrong with a request, in llama-server's words and shape:
// {"error":{"code":N,"message":"...","type":"..."}}.
#pragma once

#include "api/exchange.h"
#include "base/types.h"
#include "core/events.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fermata::api {

enum class ErrorType : std::uint8_t {
  invalid_request,  // 400
  authentication,   // 401
  permission,       // 403
  not_found,        // 404
  exceed_context,   // 400, with n_prompt_tokens and n_ctx
  conflict,         // 409
  rate_limit,       // 429, with Retry-After
  server,           // 500
  not_supported,    // 501
  unavailable,      // 503
  storage_full,     // 507
};

// Thrown inside api/ only; Service::begin turns it into an answer.
struct ApiError {
  ErrorType type = ErrorType::invalid_request;
  std::string message = {};
  Tokens prompt_tokens = {}, window = {};          // With exceed_context.
  std::optional<std::int64_t> retry_after_s = {};  // With rate_limit and unavailable.
};

int status_of(ErrorType type);
std::string error_json(const ApiError& error);
std::unique_ptr<Exchange> error_exchange(const ApiError& error);

ApiError bad_request(std::string message);
// There is no context, and none could be built.
ApiError no_engine();
// "request (N tokens) exceeds the available context size (M tokens), try increasing it"
ApiError exceeds_context(Tokens prompt, Tokens window);
// What a failed FinalEvent means to a client. REQUIRES: final.reason == FinishReason::failed.
ApiError error_of(const FinalEvent& final);

}  // namespace fermata::api
