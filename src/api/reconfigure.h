// /reconfigure: the geometry of the KV cache changes while requests run.
#pragma once

#include "api/context.h"
#include "api/exchange.h"

#include <memory>
#include <string>

namespace fermata::api {

// POST. The exchange ends with the receipt. Throws ApiError.
std::unique_ptr<Exchange> reconfigure(const std::string& body, const Context& context);
// GET: the last receipt, and whether a change is under way.
std::unique_ptr<Exchange> last_reconfigure(const Context& context);

}  // namespace fermata::api
