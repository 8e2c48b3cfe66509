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
  std::string_view rest = origin.substr(scheme + 3);
  for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
    if (!rest.starts_with(host)) continue;
    rest.remove_prefix(host.size());
    const bool is_port =
        rest.starts_with(':') && rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
    return rest.empty() || is_port;
  }
  return false;
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
