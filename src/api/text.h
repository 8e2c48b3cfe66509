// POST /tokenize and POST /detokenize.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"

#include <memory>

namespace fermata::api {

std::unique_ptr<Exchange> tokenize(const Json& body, const Context& context);
std::unique_ptr<Exchange> detokenize(const Json& body, const Context& context);

}  // namespace fermata::api
