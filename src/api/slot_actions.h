// POST /slots/{id}?action=...: what an operator does with one request or slot.
#pragma once

#include "api/context.h"
#include "api/exchange.h"

#include <memory>
#include <optional>
#include <string_view>

namespace fermata::api {

// The value of a field of a raw query; none: it is not there. Not percent-decoded.
std::optional<std::string_view> query_value(std::string_view query, std::string_view name);

// Whether a path is that of a slot, or of all: "/slots/3", "/slots/-1", "/slots".
bool is_slot_path(std::string_view path);

// The exchange ends with the receipt. REQUIRES: is_slot_path(inquiry.path). Throws ApiError.
std::unique_ptr<Exchange> slot_action(const Context& context, const Inquiry& inquiry);

}  // namespace fermata::api
