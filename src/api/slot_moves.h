// POST /slots/{id}?action=save|restore|erase as llama-server has them, and page_out|page_in.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "core/slots.h"

#include <memory>
#include <optional>
#include <string_view>

namespace fermata::api {

std::optional<SlotAction> move_action_of(std::string_view name);

// Throws ApiError when the server was not started for it.
void check_can_move(const Context& context, SlotAction action);

// Throws ApiError. REQUIRES: there is such a seat.
std::unique_ptr<Exchange> move_slot(const Context& context, SlotAction action, Seat seat,
                                    const Inquiry& inquiry);

}  // namespace fermata::api
