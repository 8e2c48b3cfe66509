// Saved conversations by name: GET /pages, GET, POST and DELETE /pages/{name}.
#pragma once

#include "api/context.h"
#include "api/exchange.h"

#include <memory>
#include <string_view>

namespace fermata::api {

// "/pages" and what is below it.
bool is_page_path(std::string_view path);

// Throws ApiError. REQUIRES: is_page_path(inquiry.path).
std::unique_ptr<Exchange> page_action(const Context& context, const Inquiry& inquiry);

}  // namespace fermata::api
