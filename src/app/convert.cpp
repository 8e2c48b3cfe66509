#include "app/convert.h"

#include "base/check.h"

#include <algorithm>
#include <filesystem>

namespace fermata::app {
namespace {

KvType kv_type_of(const std::string& name) {
  const auto type = kv_type_from(name);
  FERMATA_CHECK(type.has_value(), "the settings table allows a KV type that does not exist");
  return *type;
}

engine::llama::LoadMode load_mode_of(const std::string& name) {
  using engine::llama::LoadMode;
  if (name == "none") return LoadMode::none;
  if (name == "mmap") return LoadMode::mmap;
  if (name == "mlock") return LoadMode::mlock;
  if (name == "mmap+mlock") return LoadMode::mmap_mlock;
  if (name == "dio") return LoadMode::direct_io;
  return LoadMode::automatic;
}

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }
int threads_of(std::int64_t value) { return value < 1 ? 0 : narrow(value); }
Micros seconds(std::int64_t s) { return Micros(s * 1'000'000); }

}  // namespace

Geometry geometry_of(const settings::Settings& settings) {
  const settings::ContextSettings& context = settings.context;
  Geometry out;
  out.n_ctx = context.n_ctx;
  out.n_parallel = narrow(context.n_parallel < 0 ? settings::n_parallel_auto : context.n_parallel);
  out.cache_type_k = kv_type_of(context.cache_type_k);
  out.cache_type_v = kv_type_of(context.cache_type_v);
  out.layout = context.kv_unified ? Layout::pooled : Layout::split;
  return out;
}

engine::EngineOptions engine_options_of(const settings::Settings& settings) {
  engine::EngineOptions out;
  out.n_batch = settings.batch.n_batch;
  out.n_ubatch = settings.batch.n_ubatch;
  out.threads = threads_of(settings.threads.decode);
  out.threads_batch = threads_of(settings.threads.batch);
  out.poll = narrow(settings.threads.poll);
  out.priority = narrow(settings.threads.priority);
  out.flash_attention = settings.context.flash_attention != "off";
  out.swa_full = settings.context.swa_full;
  out.offload_kv = settings.context.offload_kv;
  out.perf = settings.batch.perf;
  out.one_sequence_per_ubatch = settings.context.deterministic;
  return out;
}

engine::llama::ModelOptions model_options_of(const settings::Settings& settings) {
  engine::llama::ModelOptions out;
  out.gpu_layers = narrow(std::max<std::int64_t>(settings.model.gpu_layers, -1));
  out.load_mode = load_mode_of(settings.model.load_mode);
  return out;
}

engine::InjectedFaults injected_faults_of(const settings::Settings& settings) {
  return {.no_room_percent = narrow(settings.preempt.no_room_percent),
          .move_percent = narrow(settings.preempt.move_fault_percent)};
}

store::StoreOptions store_options_of(const settings::Settings& settings) {
  const settings::PageSettings& pages = settings.pages;
  store::StoreOptions out;
  out.keeper.folder = pages.folder;
  if (pages.disk_bytes >= 0) out.keeper.bytes_max = Bytes(pages.disk_bytes);
  out.keeper.pages_max = static_cast<std::size_t>(pages.count);
  if (pages.ttl_s >= 0) out.keeper.ttl_seconds = pages.ttl_s;
  if (pages.bytes_per_hour >= 0) out.keeper.bytes_per_hour_max = Bytes(pages.bytes_per_hour);
  return out;
}

scheduler::SchedulerOptions scheduler_options_of(const settings::Settings& settings) {
  scheduler::SchedulerOptions out;
  out.waiting_max = static_cast<std::size_t>(settings.limits.queue_max);
  out.events_max = static_cast<std::size_t>(settings.limits.events_per_request_max);
  out.step_budget = Micros(settings.batch.step_budget_ms * 1000);
  out.deterministic = settings.context.deterministic;
  const settings::PreemptSettings& preempt = settings.preempt;
  out.overcommit = preempt.policy != "admission-only";
  out.preempt.enabled = preempt.enabled;
  out.preempt.victim = policy::victim_from(preempt.policy).value_or(out.preempt.victim);
  out.preempt.every = Tokens(preempt.every);
  out.preempt.planner = !preempt.last_resort_only;
  out.flash_attention = settings.context.flash_attention != "off";
  if (preempt.reconfigure_path == "beside") out.change_path = reconfigure::Path::beside;
  if (preempt.reconfigure_path == "in_place") out.change_path = reconfigure::Path::in_place;
  out.preempt_ram.reset();
  if (preempt.ram_mib >= 0) out.preempt_ram = Bytes(preempt.ram_mib << 20);
  out.page_ram = Bytes(settings.pages.ram_bytes);
  out.strictly_exact = preempt.exactness == "strict";
  const std::int64_t cache_mib = settings.server.cache_prompt ? settings.server.cache_ram_mib : 0;
  out.cache_ram.reset();
  if (cache_mib >= 0) out.cache_ram = Bytes(cache_mib << 20);
  out.copies_idle = settings.server.cache_idle_slots;
  out.context_shift = settings.context.context_shift;
  out.shows_texts = settings.server.slots_debug;
  const settings::ServerSettings& server = settings.server;
  if (server.sleep_idle_s > 0) out.sleep.context = seconds(server.sleep_idle_s);
  if (server.sleep_weights_s >= 0) out.sleep.weights = seconds(server.sleep_weights_s);
  return out;
}

http::ServerOptions server_options_of(const settings::Settings& settings) {
  const settings::ServerSettings& server = settings.server;
  http::ServerOptions out;
  out.hosts = server.hosts;
  out.port = static_cast<std::uint16_t>(server.port);
  out.io_threads = settings.threads.http < 1 ? 1 : narrow(settings.threads.http);
  out.workers = narrow(settings.limits.workers);
  out.header_max = Bytes(settings.limits.header_max_kib * 1024);
  out.body_max = Bytes(settings.limits.body_max_mib * 1024 * 1024);
  out.connections_max = narrow(settings.limits.connections_max);
  out.worker_queue_max = narrow(settings.limits.queue_max);
  out.read_timeout = out.write_timeout = seconds(server.timeout_s);
  out.idle_timeout = std::min(out.idle_timeout, out.read_timeout);
  out.api_prefix = server.api_prefix;
  out.reuse_port = server.reuse_port;
  const settings::SecuritySettings& security = settings.security;
  out.ssl_key_file = security.ssl_key_file;
  out.ssl_cert_file = security.ssl_cert_file;
  out.cors = {.origins = security.cors_origins,
              .methods = security.cors_methods,
              .headers = security.cors_headers,
              .credentials = security.cors_credentials};
  out.log_requests = true;
  return out;
}

LogOptions log_options_of(const settings::Settings& settings) {
  LogOptions out;
  out.disabled = settings.log.disabled;
  out.file = settings.log.file;
  out.timestamps = settings.log.timestamps;
  out.prefix = settings.log.prefix;
  out.jsonl = settings.log.jsonl;
  out.colors = settings.log.colors == "on"    ? LogColors::on
               : settings.log.colors == "off" ? LogColors::off
                                              : LogColors::automatic;
  const std::int64_t verbosity = settings.log.verbosity;
  if (verbosity >= settings::verbosity_debug) {
    out.level = LogLevel::debug;
  } else if (verbosity >= settings::verbosity_info) {
    out.level = LogLevel::info;
  } else if (verbosity >= settings::verbosity_warning) {
    out.level = LogLevel::warn;
  } else {
    out.level = LogLevel::error;
  }
  return out;
}

std::string model_name_of(const settings::Settings& settings) {
  if (!settings.model.aliases.empty()) return settings.model.aliases.front();
  return std::filesystem::path(settings.model.path).filename().string();
}

}  // namespace fermata::app
