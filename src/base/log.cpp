#include "base/log.h"

#include <memory>
#include <mutex>

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace fermata {
namespace {

constexpr std::size_t queued_lines_max = 8192;
constexpr const char* logger_name = "fermata";

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

spdlog::sink_ptr make_sink(const std::string& file) {
  if (file.empty()) return std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  return std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
}

void install(const LogOptions& options, spdlog::sink_ptr sink) {
  spdlog::drop(logger_name);
  auto logger =
      std::make_shared<spdlog::async_logger>(logger_name, std::move(sink), spdlog::thread_pool(),
                                             spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(options.disabled ? spdlog::level::off : to_spdlog(options.level));
  logger->set_pattern(options.timestamps ? "%Y-%m-%d %H:%M:%S.%e %^%L%$ %v" : "%^%L%$ %v");
  logger->flush_on(spdlog::level::trace);  // By the logging thread: a line is read when it is new.
  spdlog::set_default_logger(std::move(logger));
}

// Null after stop_logging(). Before start_logging() spdlog's own logger would write to standard
// output, which belongs to a program's results.
spdlog::logger* current() {
  static std::once_flag once;
  std::call_once(once, [] {
    const spdlog::logger* logger = spdlog::default_logger_raw();
    if (logger == nullptr || !logger->name().empty()) return;
    spdlog::set_default_logger(spdlog::stderr_color_mt(logger_name));
  });
  return spdlog::default_logger_raw();
}

}  // namespace

bool start_logging(const LogOptions& options) {
  spdlog::init_thread_pool(queued_lines_max, 1);
  try {
    install(options, make_sink(options.file));
    return true;
  } catch (const spdlog::spdlog_ex&) {
    install(options, make_sink(""));
    return false;
  }
}

void stop_logging() { spdlog::shutdown(); }

bool log_enabled(LogLevel level) {
  const spdlog::logger* logger = current();
  return logger != nullptr && logger->should_log(to_spdlog(level));
}

void log_line(LogLevel level, std::string_view line) {
  if (spdlog::logger* logger = current()) logger->log(to_spdlog(level), line);
}

}  // namespace fermata
