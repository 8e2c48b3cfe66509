#include "base/log.h"

#include <memory>
#include <mutex>

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
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

spdlog::color_mode to_spdlog(LogColors colors) {
  switch (colors) {
    case LogColors::automatic:
      return spdlog::color_mode::automatic;
    case LogColors::on:
      return spdlog::color_mode::always;
    case LogColors::off:
      return spdlog::color_mode::never;
  }
  return spdlog::color_mode::automatic;
}

spdlog::sink_ptr make_sink(const std::string& file, LogColors colors) {
  if (file.empty()) {
    return std::make_shared<spdlog::sinks::stderr_color_sink_mt>(to_spdlog(colors));
  }
  return std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
}

std::string pattern_of(const LogOptions& options) {
  if (options.jsonl) return R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":"%*"})";
  std::string out;
  if (options.timestamps) out += "%Y-%m-%d %H:%M:%S.%e ";
  if (options.prefix) out += "%^%L%$ ";
  return out + "%v";
}

// The message as the inside of a JSON string. What is no printable ASCII becomes '?': lines of the
// log are our own words and clients' paths, and those come without the rest.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    for (const char c : std::string_view(message.payload.data(), message.payload.size())) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') out.push_back('\\');
      out.push_back(byte < 0x20 || byte >= 0x7F ? '?' : c);
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

void install(const LogOptions& options, spdlog::sink_ptr sink) {
  spdlog::drop(logger_name);
  auto logger =
      std::make_shared<spdlog::async_logger>(logger_name, std::move(sink), spdlog::thread_pool(),
                                             spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(options.disabled ? spdlog::level::off : to_spdlog(options.level));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JsonMessage>('*').set_pattern(pattern_of(options));
  logger->set_formatter(std::move(formatter));
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
    install(options, make_sink(options.file, options.colors));
    return true;
  } catch (const spdlog::spdlog_ex&) {
    install(options, make_sink("", options.colors));
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
