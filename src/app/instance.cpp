#include "app/instance.h"

#include "app/convert.h"
#include "base/log.h"
#include "engine/faulty.h"
#include "engine/llama/available_memory.h"
#include "engine/llama/backend.h"

#include <array>

namespace fermata::app {
namespace {

// One token through the new context, so that the first client does not pay for first touches.
void warm_up(engine::Engine& engine) {
  const std::array<TokenId, 1> token{TokenId{0}};
  const std::array<engine::RowGroup, 1> groups{{{.seat = Seat(0), .first = {}, .tokens = token}}};
  std::array<engine::GroupResult, 1> results;
  if (engine.step(groups, results) != engine::StepOutcome::done) return;
  engine.clear(Seat(0));
}

}  // namespace

Result<std::unique_ptr<Instance>, std::string> Instance::start(
    const settings::Settings& settings, std::unique_ptr<engine::Model> model,
    std::unique_ptr<engine::Vocabulary> vocabulary) {
  std::unique_ptr<Instance> out(new Instance);
  out->settings_ = settings;
  out->model_ = std::move(model);
  out->vocabulary_ = std::move(vocabulary);
  out->workshop_ =
      std::make_unique<reconfigure::ModelWorkshop>(*out->model_, out->workshop_options());
  auto engine = out->workshop_->build(geometry_of(settings));
  if (!engine) return Err(engine.error());
  const Geometry& geometry = (*engine)->geometry();
  out->workshop_->set_faults(static_cast<int>(settings.preempt.build_fault_percent));
  scheduler::SchedulerOptions options = scheduler_options_of(settings);
  options.workshop = out->workshop_.get();
  if (options.context_shift && !(*engine)->capabilities().shift) {
    log_warn("--context-shift: this model's memory cannot be shifted; full windows end replies");
  }
  options.bytes_per_token =
      out->workshop_->bytes_per_token(geometry) + engine::state_bytes_per_cell;
  if (auto built = out->build_embedder(options); !built) return Err(built.error());
  if (auto opened = out->open_store(geometry, options); !opened) return Err(opened.error());
  if (auto opened = out->open_slot_files(options); !opened) return Err(opened.error());
  out->scheduler_ =
      std::make_unique<scheduler::Scheduler>(**engine, *out->vocabulary_, out->clock_, options);
  api::Context context;
  context.settings = &out->settings_;
  context.vocabulary = out->vocabulary_.get();
  context.model = &out->model_->info();
  context.scheduler = out->scheduler_.get();
  context.embedder = out->embedder_.get();
  context.model_name = model_name_of(settings);
  context.build = build_info();
  context.started = wall_clock_seconds();
  if (out->store_) {
    context.more_metrics = [store = out->store_.get()](Exposition& exposition) {
      store::write(exposition, store->stats());
      store::write(exposition, store->disk(), "disk");
    };
  }
  out->bell_.hang_up(out->scheduler_.get());
  out->service_ = api::make_service(context);
  out->thread_ = std::thread([scheduler = out->scheduler_.get()] { scheduler->run(); });
  return out;
}

Instance::~Instance() {
  if (thread_.joinable()) {
    scheduler_->stop_now();
    thread_.join();
  }
  bell_.hang_up(nullptr);
  close_store();
}

// What every engine goes through before it serves.
reconfigure::WorkshopOptions Instance::workshop_options() {
  const engine::InjectedFaults faults = injected_faults_of(settings_);
  const bool warms_up = settings_.server.warmup;
  reconfigure::WorkshopOptions out;
  out.engine = engine_options_of(settings_);
  out.dress = [faults, warms_up](std::unique_ptr<engine::Engine> engine) {
    if (warms_up) warm_up(*engine);
    if (faults.no_room_percent > 0 || faults.move_percent > 0) {
      engine = std::make_unique<engine::FaultyEngine>(std::move(engine), faults, 1);
    }
    return engine;
  };
  out.available_memory = engine::llama::available_memory;
  out.wake = [this] { bell_.ring(); };
  return out;
}

Result<void, std::string> Instance::build_embedder(scheduler::SchedulerOptions& options) {
  if (!settings_.embedding.enabled) return {};
  auto built = model_->build_embedder(engine::pooling_from(settings_.embedding.pooling),
                                      engine_options_of(settings_));
  if (!built) return Err("--embeddings: " + built.error().message);
  embedder_ = std::move(built).value();
  options.embedder = embedder_.get();
  const engine::EmbedderLimits& limits = embedder_->limits();
  log_info("embeddings: {} values, pooling {}, texts of {} tokens at most", limits.width,
           engine::name(embedder_->pooling()), limits.text.value);
  return {};
}

Result<void, std::string> Instance::open_store(const Geometry& geometry,
                                               scheduler::SchedulerOptions& options) {
  if (settings_.pages.folder.empty()) return {};
  store::StoreOptions wanted = store_options_of(settings_);
  wanted.wake = [this] { bell_.ring(); };
  auto opened = store::Store::open(std::move(wanted));
  if (!opened) return Err("--page-dir: " + opened.error());
  store_ = std::move(opened).value();
  const store::OpenReport& report = store_->opened();
  log_info("--page-dir holds {} conversations, {} bytes", report.pages, report.bytes.value);
  options.archive.store = store_.get();
  options.archive.fingerprint = model_->fingerprint(geometry.cache_type_k, geometry.cache_type_v);
  return {};
}

Result<void, std::string> Instance::open_slot_files(scheduler::SchedulerOptions& options) {
  if (settings_.server.slot_save_path.empty()) return {};
  auto opened = kv::SlotFiles::open({.folder = settings_.server.slot_save_path,
                                     .by_owner = settings_.security.api_keys.size() > 1,
                                     .wake = [this] { bell_.ring(); }});
  if (!opened) return Err("--slot-save-path: " + opened.error());
  slot_files_ = std::move(opened).value();
  options.slot_files = slot_files_.get();
  return {};
}

void Instance::close_store() {
  if (!store_) return;
  const store::CloseReport report =
      store_->close(Micros(settings_.limits.shutdown_timeout_s * 1'000'000));
  log_info("{} conversations were still written to --page-dir, {} were not", report.saved,
           report.not_saved);
}

std::string build_info() {
  return "fermata " FERMATA_VERSION " (libllama " + engine::llama::library_version() + ")";
}

}  // namespace fermata::app
