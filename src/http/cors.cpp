#include "http/cors.h"

#include <algorithm>

namespace fermata::http {
namespace {

// What is longer is no origin, and nothing that a page asks for.
constexpr std::size_t origin_bytes_max = 512;
constexpr std::size_t asked_bytes_max = 4096;

// "http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080"
bool is_of_this_machine(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return false;
  std::string_view host = origin.substr(scheme + 3);
  const std::size_t end = host.starts_with('[') ? host.find(']') : host.find(':');
  host = host.substr(0, host.starts_with('[') && end != std::string_view::npos ? end + 1 : end);
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

bool names(const CorsOptions& options, std::string_view origin) {
  return std::ranges::any_of(options.origins, [origin](const std::string& allowed) {
    return allowed == "localhost" ? is_of_this_machine(origin) : allowed == origin;
  });
}

}  // namespace

void add_cors(const CorsOptions& options, std::string_view origin, HeaderLines& out) {
  if (origin.size() > origin_bytes_max) origin = "";
  const bool everybody = std::ranges::find(options.origins, "*") != options.origins.end();
  if (everybody && (origin.empty() || !options.credentials)) {
    out.emplace_back("Access-Control-Allow-Origin", "*");
    return;
  }
  out.emplace_back("Vary", "Origin");
  if (origin.empty() || !(everybody || names(options, origin))) return;
  out.emplace_back("Access-Control-Allow-Origin", origin);
  if (options.credentials) out.emplace_back("Access-Control-Allow-Credentials", "true");
}

api::Head preflight_head(const CorsOptions& options, const api::Inquiry& inquiry) {
  api::Head head;
  head.status = 204;
  head.headers.emplace_back("Access-Control-Allow-Methods", options.methods);
  const std::string_view asked = api::header(inquiry, "access-control-request-headers");
  const bool as_asked = options.headers == "*" && !asked.empty() && asked.size() < asked_bytes_max;
  head.headers.emplace_back("Access-Control-Allow-Headers",
                            as_asked ? std::string(asked) : options.headers);
  return head;
}

}  // namespace fermata::http
