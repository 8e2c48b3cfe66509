#include "engine/llama/log_sink.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

#include <llama.h>
#include <log.h>

namespace fermata::engine::llama {
namespace {

std::atomic<LogLevel> lowest_level{LogLevel::warn};
thread_local LibraryErrors* errors_on_this_thread = nullptr;

LogLevel ours(ggml_log_level level) {
  if (level == GGML_LOG_LEVEL_ERROR) return LogLevel::error;
  if (level == GGML_LOG_LEVEL_WARN) return LogLevel::warn;
  return LogLevel::info;
}

// The library ends lines with a newline and starts them with the name of its function.
std::string_view bare(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

void sink(ggml_log_level level, const char* text, void*) {
  // Continuations are progress dots. The debug level quotes what a model wrote.
  if (level == GGML_LOG_LEVEL_CONT || level == GGML_LOG_LEVEL_DEBUG) return;
  const std::string_view line = bare(text);
  if (line.empty()) return;
  if (errors_on_this_thread != nullptr &&
      !errors_on_this_thread->take(level == GGML_LOG_LEVEL_ERROR, line)) {
    return;
  }
  const LogLevel as = ours(level);
  if (as <= lowest_level.load(std::memory_order_relaxed)) log(as, "libllama: {}", line);
}

}  // namespace

void route_library_log(LogLevel level) {
  lowest_level.store(level, std::memory_order_relaxed);
  llama_log_set(sink, nullptr);
  // libllama-common has a log of its own, which quotes replies that it cannot parse.
  common_log_set_verbosity_thold(-1);
}

LibraryErrors::LibraryErrors(Echo echo)
    : outer_(std::exchange(errors_on_this_thread, this)), echo_(echo) {}

LibraryErrors::~LibraryErrors() { errors_on_this_thread = outer_; }

bool LibraryErrors::take(bool is_error, std::string_view line) {
  // The first line is the cause; the ones after it tell who gave up because of it.
  if (is_error && first_.empty()) first_ = line;
  return echo_ == Echo::warnings && !is_error;
}

std::string LibraryErrors::reason(const std::string& otherwise) const {
  if (first_.empty()) return otherwise;
  std::string line = first_;
  std::replace(line.begin(), line.end(), '\n', ' ');
  const std::size_t colon = line.find(": ");
  const bool starts_with_a_function = colon != std::string::npos && line.find(' ') > colon;
  return starts_with_a_function ? line.substr(colon + 2) : line;
}

}  // namespace fermata::engine::llama
