// "response_fields": the parts of a native reply that its client wants.
#pragma once

#include "api/fields.h"

#include <string>
#include <vector>

namespace fermata::api {

// Paths like "content" and "generation_settings/n_predict"; none: everything. Throws ApiError.
std::vector<std::string> read_response_fields(const Fields& fields);

// An object with one member for each path that leads somewhere, named by the path.
Json pick(const Json& reply, const std::vector<std::string>& paths);

}  // namespace fermata::api
