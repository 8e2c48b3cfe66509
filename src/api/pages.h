// Saved conversations by name: GET /pages, GET, POST, PUT and DELETE /pages/{name}, and
// GET /pages/{name}/export.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "core/pages.h"

#include <memory>
#include <string_view>

namespace fermata::api {

// "/pages" and what is below it.
bool is_page_path(std::string_view path);

// Throws ApiError. The body may be taken out. REQUIRES: is_page_path(inquiry.path).
std::unique_ptr<Exchange> page_action(const Context& context, Inquiry& inquiry);

// What is answered to a command that came to nothing.
std::unique_ptr<Exchange> page_error(const PageCommand& command, PageOutcome outcome);

}  // namespace fermata::api
