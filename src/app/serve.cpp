#include "app/serve.h"

#include "api/chat_request.h"
#include "app/convert.h"
#include "app/defaults.h"
#include "app/files.h"
#include "app/gate.h"
#include "app/huge_pages.h"
#include "app/instance.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "http/server.h"
#include "settings/help.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

namespace fermata::app {
namespace {

// How long clients get to read the last error event once requests were ended.
constexpr Micros farewell{2'000'000};

void complain(const std::string& message) { std::fprintf(stderr, "error: %s\n", message.c_str()); }

Exit give_up(Exit code, const std::string& message) {
  complain(message);
  stop_logging();
  return code;
}

// A progress line that rewrites itself on a terminal and stays silent elsewhere.
bool show_progress(float done) {
  if (isatty(STDERR_FILENO) == 0) return true;
  std::fprintf(stderr, "\rloading the model %3d %%%s", static_cast<int>(done * 100.0F),
               done >= 1.0F ? "\n" : "");
  return true;
}

// Waits for SIGINT or SIGTERM, at most so long. REQUIRES: both are blocked in every thread.
bool signalled_within(Micros time) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  const timespec wait{time.value / 1'000'000, (time.value % 1'000'000) * 1000};
  return sigtimedwait(&set, nullptr, &wait) > 0;
}

void block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

Result<std::string, std::string> chat_template_of(const settings::Settings& settings) {
  if (settings.chat.template_file.empty()) return settings.chat.template_text;
  return read_text("--chat-template-file", settings.chat.template_file);
}

// The keys of the file beside those of the command line.
Result<void, std::string> collect_keys(settings::SecuritySettings& security) {
  if (security.api_key_file.empty()) return {};
  auto keys = read_keys(security.api_key_file);
  if (!keys) return Err{keys.error()};
  security.api_keys.insert(security.api_keys.end(), keys->begin(), keys->end());
  return {};
}

// Each connection needs a descriptor, and the usual limit is 1024.
void raise_descriptor_limit(std::int64_t connections) {
  constexpr rlim_t others = 256;
  const rlim_t wanted = static_cast<rlim_t>(connections) + others;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
    log_info(
        "{} open files are allowed here: fewer than --connections-max {} needs; the rest waits",
        limit.rlim_cur, connections);
  }
}

void announce(const http::Server& server, const settings::Settings& settings) {
  const std::string& prefix = settings.server.api_prefix;
  const bool tls = !settings.security.ssl_cert_file.empty();
  const std::string scheme = tls ? "https://" : "http://";
  std::string curl;
  for (const std::string& address : server.addresses()) {
    const bool is_file = address.starts_with("unix:");
    std::string url = is_file ? "" : scheme;
    url += address;
    url += prefix;
    std::printf("Fermata listens on %s\n", url.c_str());
    if (!curl.empty()) continue;
    curl = is_file ? "--unix-socket " + address.substr(5) + " http://localhost" + prefix
                   : (tls ? "-k " : "") + url;
  }
  const char* const key =
      settings.security.api_keys.empty() ? "" : " -H \"Authorization: Bearer $LLAMA_API_KEY\"";
  std::printf(
      "Try: curl%s %s/v1/chat/completions -d '{\"messages\":[{\"role\":\"user\","
      "\"content\":\"Tell me a story.\"}],\"stream\":true}'\n",
      key, curl.c_str());
  std::fflush(stdout);
}

// Serves until told to stop, then in steps: let requests finish, end them, end connections.
void serve_until_signalled(http::Server& server, Instance& instance, Micros grace) {
  constexpr Micros forever{3'600'000'000};
  constexpr Micros glance{20'000};
  while (!signalled_within(forever)) {
  }
  log_info("stopping: requests may go on for {} s; a second signal ends them now",
           grace.value / 1'000'000);
  server.stop_gracefully();
  instance.stop_holding();
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    server.wait_until_ended();
    ended = true;
  });
  bool second = false;
  for (Micros waited{0}; !ended && !second && waited < grace; waited += glance) {
    second = signalled_within(glance);
  }
  instance.end_requests();
  second = false;  // Clients get to read their error event; a third signal does not wait for that.
  for (Micros waited{0}; !ended && !second && waited < farewell; waited += glance) {
    second = signalled_within(glance);
  }
  server.stop_now();
  waiter.join();
}

Exit load_and_serve(settings::Settings settings) {
  if (const auto keys = collect_keys(settings.security); !keys) {
    return give_up(Exit::usage, keys.error());
  }
  const auto library = engine::llama::start_library(settings.model.backend_dir);
  if (!library) return give_up(Exit::no_library, library.error());
  if (const std::string fault = api::find_chat_settings_fault(settings.chat); !fault.empty()) {
    return give_up(Exit::usage, fault);
  }
  auto chat_template = chat_template_of(settings);
  if (!chat_template) return give_up(Exit::usage, chat_template.error());

  raise_descriptor_limit(settings.limits.connections_max);
  const SteadyClock clock;
  Gate gate;
  auto server = http::Server::listen(server_options_of(settings), gate, clock);
  if (!server) return give_up(Exit::no_port, server.error());

  auto vocabulary = engine::llama::load_vocabulary(settings.model.path, *chat_template);
  if (!vocabulary) return give_up(Exit::no_model, vocabulary.error().message);
  const auto with_grammar = with_default_grammar(settings, **vocabulary);
  if (!with_grammar) return give_up(Exit::usage, with_grammar.error());
  engine::llama::ModelOptions options = model_options_of(settings);
  options.progress = show_progress;
  auto model = engine::llama::load_model(settings.model.path, options);
  if (!model) return give_up(Exit::no_model, model.error().message);
  auto instance =
      Instance::start(*with_grammar, std::move(model).value(), std::move(vocabulary).value());
  if (!instance) return give_up(Exit::no_context, instance.error());

  const engine::EngineLimits& limits = (*instance)->limits();
  log_info("{}: {} cells, {} slots, {} tokens each at most", model_name_of(settings),
           limits.cells.value, limits.seats, limits.window.value);
  if (const Tokens asked = settings.context.n_ctx; asked > Tokens(0) && asked != limits.cells) {
    log_info("--ctx-size {} became {}: the library keeps cells in multiples of 256, for each slot",
             asked.value, limits.cells.value);
  }
  gate.open((*instance)->service());
  announce(**server, settings);
  serve_until_signalled(**server, **instance,
                        Micros(settings.limits.shutdown_timeout_s * 1'000'000));
  return Exit::ok;
}

}  // namespace

Exit run_serve(std::span<const std::string_view> args, const settings::Environment& environment) {
  const auto parsed = settings::parse_settings(args, environment);
  if (!parsed) {
    complain(parsed.error().message);
    return Exit::usage;
  }
  const settings::Settings& settings = *parsed;
  if (settings.invocation.help) {
    std::fputs(settings::help_text().c_str(), stdout);
    return Exit::ok;
  }
  if (settings.invocation.version) {
    std::printf("%s\n", build_info().c_str());
    return Exit::ok;
  }
  if (settings.model.path.empty()) {
    complain("no model was named; give one with -m MODEL.gguf");
    return Exit::usage;
  }
  if (settings.security.ssl_key_file.empty() != settings.security.ssl_cert_file.empty()) {
    complain("TLS needs both --ssl-key-file and --ssl-cert-file: give the other one too");
    return Exit::usage;
  }
  if (settings.server.huge_pages) restart_on_huge_pages();
  block_signals();
  if (!start_logging(log_options_of(settings))) {
    complain("--log-file: cannot write " + settings.log.file + "; logging to standard error");
  }
  for (const std::string& warning : settings.invocation.warnings) log_warn("{}", warning);
  if (settings.preempt.every > 0) {
    log_warn("--preempt-every {}: every request is parked after so many tokens; this is a test",
             settings.preempt.every);
  }
  if (settings.preempt.move_fault_percent > 0 || settings.preempt.no_room_percent > 0) {
    log_warn(
        "--inject-move-faults {} --inject-no-room {}: the engine fails on purpose; this is a test",
        settings.preempt.move_fault_percent, settings.preempt.no_room_percent);
  }
  const Exit code = load_and_serve(settings);
  stop_logging();
  return code;
}

}  // namespace fermata::app
