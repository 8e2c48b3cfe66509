#include "api/service.h"

#include "api/access.h"
#include "api/anthropic.h"
#include "api/chat.h"
#include "api/completion.h"
#include "api/control_texts.h"
#include "api/conversation.h"
#include "api/embeddings.h"
#include "api/error.h"
#include "api/fields.h"
#include "api/infill.h"
#include "api/info.h"
#include "api/live_chats.h"
#include "api/pages.h"
#include "api/reconfigure.h"
#include "api/responses.h"
#include "api/slot_actions.h"
#include "api/text.h"
#include "base/log.h"

#include <algorithm>
#include <array>
#include <exception>

namespace fermata::api {
namespace {

enum class Action : std::uint8_t {
  health,
  models,
  props,
  set_props,
  slots,
  metrics,
  tokenize,
  detokenize,
  apply_template,
  native_completion,
  openai_completion,
  chat_completion,
  chat_control,
  infill,
  chat_input_tokens,
  create_response,
  response_input_tokens,
  create_message,
  count_message_tokens,
  change_geometry,
  last_change,
  native_embeddings,
  openai_embeddings,
  not_yet,  // llama-server has it, we do not yet: 501.
};

constexpr std::size_t cheap_body_bytes_max = 4096;

struct Route {
  Method method;
  std::string_view path;
  Action action;
};

constexpr auto routes = std::to_array<Route>({
    {Method::get, "/health", Action::health},
    {Method::get, "/v1/health", Action::health},
    {Method::get, "/models", Action::models},
    {Method::get, "/v1/models", Action::models},
    {Method::get, "/props", Action::props},
    {Method::post, "/props", Action::set_props},
    {Method::get, "/slots", Action::slots},
    {Method::get, "/metrics", Action::metrics},
    {Method::post, "/reconfigure", Action::change_geometry},
    {Method::get, "/reconfigure", Action::last_change},
    {Method::post, "/tokenize", Action::tokenize},
    {Method::post, "/detokenize", Action::detokenize},
    {Method::post, "/apply-template", Action::apply_template},
    {Method::post, "/completion", Action::native_completion},
    {Method::post, "/completions", Action::native_completion},
    {Method::post, "/v1/completions", Action::openai_completion},
    {Method::post, "/chat/completions", Action::chat_completion},
    {Method::post, "/v1/chat/completions", Action::chat_completion},
    {Method::post, "/chat/completions/input_tokens", Action::chat_input_tokens},
    {Method::post, "/v1/chat/completions/input_tokens", Action::chat_input_tokens},
    {Method::post, "/v1/chat/completions/control", Action::chat_control},
    {Method::post, "/responses", Action::create_response},
    {Method::post, "/v1/responses", Action::create_response},
    {Method::post, "/responses/input_tokens", Action::response_input_tokens},
    {Method::post, "/v1/responses/input_tokens", Action::response_input_tokens},
    {Method::post, "/v1/messages", Action::create_message},
    {Method::post, "/v1/messages/count_tokens", Action::count_message_tokens},
    {Method::post, "/infill", Action::infill},
    {Method::post, "/embedding", Action::native_embeddings},
    {Method::post, "/embeddings", Action::native_embeddings},
    {Method::post, "/v1/embeddings", Action::openai_embeddings},
    {Method::post, "/rerank", Action::not_yet},
    {Method::post, "/reranking", Action::not_yet},
    {Method::post, "/v1/rerank", Action::not_yet},
    {Method::post, "/v1/reranking", Action::not_yet},
    {Method::get, "/lora-adapters", Action::not_yet},
    {Method::post, "/lora-adapters", Action::not_yet},
});

const Route* find_route(Method method, std::string_view path) {
  if (method == Method::head) method = Method::get;
  for (const Route& route : routes) {
    if (route.method == method && route.path == path) return &route;
  }
  return nullptr;
}

// What may be asked without a key.
bool is_public(const Inquiry& inquiry) {
  const Route* route = find_route(inquiry.method, inquiry.path);
  return route != nullptr && (route->action == Action::health || route->action == Action::models);
}

class Routes final : public Service {
 public:
  explicit Routes(const Context& context)
      : access_(context.settings->security.api_keys), control_texts_(*context.vocabulary) {
    contexts_.assign(std::max<std::size_t>(access_.owners().size(), 1), context);
    for (std::size_t i = 0; i < access_.owners().size(); ++i) {
      contexts_[i].owner = access_.owners()[i];
    }
    for (Context& each : contexts_) {
      each.live_chats = &live_chats_;
      each.control_texts = &control_texts_;
    }
  }

  std::unique_ptr<Exchange> begin(Inquiry inquiry) override {
    try {
      return answer(inquiry);
    } catch (const ApiError& error) {
      return is_messages_path(inquiry.path) ? message_error_exchange(error) : error_exchange(error);
    } catch (const std::exception& error) {
      log_error("a request could not be answered: {}", error.what());
      return error_exchange({.type = ErrorType::server, .message = "the request failed inside"});
    }
  }

  // A refusal is cheap too.
  bool is_cheap(const Inquiry& inquiry) const override {
    const Route* route = find_route(inquiry.method, inquiry.path);
    if (!may_ask(inquiry)) return true;
    if (is_slot_path(inquiry.path) || is_page_path(inquiry.path)) {
      return inquiry.body.size() <= cheap_body_bytes_max;
    }
    return route == nullptr || route->method == Method::get;
  }

 private:
  bool may_ask(const Inquiry& inquiry) const {
    return is_public(inquiry) || access_.find(inquiry).has_value();
  }

  std::unique_ptr<Exchange> answer(Inquiry& inquiry) {
    if (!may_ask(inquiry)) {
      throw ApiError{.type = ErrorType::authentication, .message = "Invalid API Key"};
    }
    const Context& context = contexts_[access_.find(inquiry).value_or(0)];
    if (inquiry.method == Method::post && is_slot_path(inquiry.path)) {
      return slot_action(context, inquiry);
    }
    if (is_page_path(inquiry.path)) return page_action(context, inquiry);
    const Route* route = find_route(inquiry.method, inquiry.path);
    if (route == nullptr) {
      throw ApiError{.type = ErrorType::not_found, .message = "File Not Found"};
    }
    switch (route->action) {
      case Action::health:
        return health();
      case Action::models:
        return models(context);
      case Action::props:
        return props(context);
      case Action::slots:
        return slots(context, query_value(inquiry.query, "fail_on_no_slot") == "1");
      case Action::metrics:
        return metrics(context, scrape_window_);
      case Action::set_props:
        return set_props(context);
      case Action::change_geometry:
        return reconfigure(inquiry.body, context);
      case Action::last_change:
        return last_reconfigure(context);
      case Action::not_yet:
        throw ApiError{.type = ErrorType::not_supported,
                       .message = std::string(route->path) + " is not supported yet"};
      default:
        return answer_body(route->action, body_of(inquiry), context);
    }
  }

  static Json body_of(const Inquiry& inquiry) {
    Json body = parse_object(inquiry.body);
    take_conversation_header(inquiry, body);
    return body;
  }

  std::unique_ptr<Exchange> answer_body(Action action, const Json& body, const Context& context) {
    switch (action) {
      case Action::tokenize:
        return tokenize(body, context);
      case Action::detokenize:
        return detokenize(body, context);
      case Action::apply_template:
        return apply_template(body, context);
      case Action::native_completion:
        return native_completion(body, context);
      case Action::openai_completion:
        return openai_completion(body, context);
      case Action::chat_control:
        return chat_control(body, context);
      case Action::infill:
        return infill(body, context);
      case Action::chat_input_tokens:
        return chat_input_tokens(body, context);
      case Action::create_response:
        return create_response(body, context);
      case Action::response_input_tokens:
        return response_input_tokens(body, context);
      case Action::create_message:
        return create_message(body, context);
      case Action::count_message_tokens:
        return count_message_tokens(body, context);
      case Action::native_embeddings:
        return native_embeddings(body, context);
      case Action::openai_embeddings:
        return openai_embeddings(body, context);
      default:
        return chat_completion(body, context);
    }
  }

  std::unique_ptr<Exchange> set_props(const Context& context) const {
    if (!context.settings->server.props) {
      throw ApiError{.type = ErrorType::not_supported,
                     .message =
                         "This server does not support changing global properties. Start it with "
                         "`--props`"};
    }
    return ready_exchange(Head{}, R"({"success":true})");
  }

  Access access_;
  std::vector<Context> contexts_;  // One for each key, one without any. Replies refer to them.
  LiveChats live_chats_;
  const ControlTexts control_texts_;
  ScrapeWindow scrape_window_;
};

}  // namespace

std::unique_ptr<Service> make_service(const Context& context) {
  return std::make_unique<Routes>(context);
}

}  // namespace fermata::api
