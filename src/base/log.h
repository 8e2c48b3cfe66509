// The front of logging; spdlog behind it. Asynchronous: a line costs the caller one formatted
// string and a queue slot, and when the queue is full the oldest line is dropped, never the caller
// blocked. The step path of the scheduler does not log. No text of a conversation and no key is
// ever logged.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace fermata {

enum class LogLevel : unsigned char { error, warn, info, debug };

enum class LogColors : unsigned char { automatic, on, off };  // automatic: on a terminal.

struct LogOptions {
  LogLevel level = LogLevel::info;
  std::string file;  // Empty: standard error.
  bool timestamps = true;
  bool prefix = true;  // Begin lines with their level.
  bool jsonl = false;  // {"time":"...","level":"info","message":"..."}, without colours.
  LogColors colors = LogColors::automatic;
  bool disabled = false;
};

// Call once before the first line; without it lines go to standard error at `info`.
// False when the file cannot be opened (lines then go to standard error).
[[nodiscard]] bool start_logging(const LogOptions& options);
// Writes what is queued. Called at exit.
void stop_logging();

bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view line);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::error, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::warn, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::debug, format, std::forward<Args>(args)...);
}

}  // namespace fermata
