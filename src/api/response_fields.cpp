#include "api/response_fields.h"

#include <string_view>

namespace fermata::api {
namespace {

constexpr std::size_t paths_max = 64;

const Json* follow(const Json& reply, std::string_view path) {
  const Json* at = &reply;
  while (true) {
    if (!at->is_object()) return nullptr;
    const std::size_t slash = path.find('/');
    const auto found = at->find(path.substr(0, slash));
    if (found == at->end()) return nullptr;
    at = &*found;
    if (slash == std::string_view::npos) return at;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

std::vector<std::string> read_response_fields(const Fields& fields) {
  return fields.strings("response_fields", {}, paths_max);
}

Json pick(const Json& reply, const std::vector<std::string>& paths) {
  Json out = Json::object();
  for (const std::string& path : paths) {
    if (const Json* value = follow(reply, path)) out[path] = *value;
  }
  return out;
}

}  // namespace fermata::api
