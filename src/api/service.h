// The routes: which path means what.
#pragma once

#include "api/context.h"
#include "api/exchange.h"

#include <memory>

namespace fermata::api {

// Thread-safe. What `context` points to outlives the service.
std::unique_ptr<Service> make_service(const Context& context);

}  // namespace fermata::api
