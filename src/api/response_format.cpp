#include "api/response_format.h"

#include "api/error.h"

#include <fmt/format.h>

namespace fermata::api {

std::string read_response_format(const Fields& fields) {
  const Json* format = fields.find("response_format");
  if (format == nullptr) return "";
  if (!format->is_object()) throw bad_request("response_format: must be an object");
  const Fields inside(*format);
  const Json* type = inside.find("type");
  if (type == nullptr || !type->is_string()) {
    throw bad_request("response_format.type: must be a text");
  }
  const Json* schema = nullptr;
  if (*type == "json_object") {
    schema = inside.find("schema");
  } else if (*type == "json_schema") {
    const Json* wrapper = inside.find("json_schema");
    if (wrapper == nullptr || !wrapper->is_object()) {
      throw bad_request("response_format.json_schema: must be an object");
    }
    static_cast<void>(Fields(*wrapper).boolean("strict", false));
    schema = Fields(*wrapper).find("schema");
  } else if (*type == "text") {
    return "";
  } else {
    throw bad_request(
        fmt::format("response_format.type: must be one of \"text\", "
                    "\"json_object\" or \"json_schema\", but got: {}",
                    type->get<std::string>()));
  }
  if (schema != nullptr && !schema->is_object()) {
    throw bad_request("response_format.schema: must be an object");
  }
  return schema == nullptr || schema->empty() ? R"({"type":"object"})" : dump(*schema);
}

}  // namespace fermata::api
