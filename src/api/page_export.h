// GET /pages/{name}/export: a page as a parcel, one part after the other at the client's pace.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "core/pages.h"

#include <memory>

namespace fermata::api {

// Throws ApiError. REQUIRES: command.action == export_part; its reply is not set.
std::unique_ptr<Exchange> page_export(const Context& context, PageCommand command);

}  // namespace fermata::api
