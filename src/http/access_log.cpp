#include "http/access_log.h"

#include "base/log.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace fermata::http {
namespace {

constexpr std::size_t path_bytes_max = 200;

constexpr std::array<std::string_view, 7> polled = {
    "/health", "/v1/health", "/models", "/v1/models", "/props", "/slots", "/metrics"};

// Clients choose the path: it stays one short line of plain letters.
std::string shown(std::string_view path) {
  std::string out(path.substr(0, path_bytes_max));
  std::ranges::replace_if(
      out, [](char c) { return c <= 0x20 || c >= 0x7F; }, '?');
  if (path.size() > path_bytes_max) out += "...";
  return out.empty() ? "-" : out;
}

bool is_polled(const Visit& visit) {
  return visit.method == api::Method::get && visit.status == 200 &&
         std::ranges::any_of(polled, [&](std::string_view end) { return visit.path == end; });
}

}  // namespace

std::string visit_text(const Visit& visit, Micros took) {
  const std::string status = visit.status == 0 ? "-" : fmt::format("{}", visit.status);
  const bool unfinished = visit.is_cut || visit.status == 0;
  return fmt::format("{} {} {}, {} bytes, {:.1f} ms{}", api::name(visit.method), shown(visit.path),
                     status, visit.bytes, static_cast<double>(took.value) / 1000.0,
                     unfinished ? ", cut off" : "");
}

void log_visit(const Visit& visit, Micros now) {
  if (visit.path.empty() && visit.status == 0) return;
  const LogLevel level = is_polled(visit) ? LogLevel::debug : LogLevel::info;
  if (log_enabled(level)) log_line(level, visit_text(visit, now - visit.begun));
}

}  // namespace fermata::http
