// One model being served: engine, scheduler with its thread, and the routes. Used by `serve`, and
// by tests with the fake engine.
#pragma once

#include "api/service.h"
#include "base/clock.h"
#include "engine/model.h"
#include "engine/vocabulary.h"
#include "kv/slot_files.h"
#include "reconfigure/workshop.h"
#include "scheduler/scheduler.h"
#include "settings/settings.h"
#include "store/store.h"

#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace fermata::app {

class Instance {
 public:
  // Builds the engine and starts the scheduler's thread. `settings` is copied. Error: one line.
  static Result<std::unique_ptr<Instance>, std::string> start(
      const settings::Settings& settings, std::unique_ptr<engine::Model> model,
      std::unique_ptr<engine::Vocabulary> vocabulary);
  // Ends every request and the thread.
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  api::Service& service() { return *service_; }
  engine::EngineLimits limits() const { return scheduler_->status().limits(); }
  // Ends who is parked by hand: nobody will let it back. Any thread.
  void stop_holding() { scheduler_->stop_holding(); }
  // Every request ends with an error event; no more are taken. Any thread.
  void end_requests() { scheduler_->stop_now(); }

 private:
  // Wakes the scheduler, while there is one.
  class Bell {
   public:
    void ring() {
      const std::lock_guard lock(mutex_);
      if (target_ != nullptr) target_->poke();
    }
    void hang_up(scheduler::Scheduler* target) {
      const std::lock_guard lock(mutex_);
      target_ = target;
    }

   private:
    std::mutex mutex_;
    scheduler::Scheduler* target_ = nullptr;
  };

  Instance() = default;
  reconfigure::WorkshopOptions workshop_options();
  Result<void, std::string> build_embedder(scheduler::SchedulerOptions& options);
  Result<void, std::string> open_store(const Geometry& geometry,
                                       scheduler::SchedulerOptions& options);
  Result<void, std::string> open_slot_files(scheduler::SchedulerOptions& options);
  void close_store();

  settings::Settings settings_;
  SteadyClock clock_;
  std::unique_ptr<engine::Model> model_;
  std::unique_ptr<engine::Vocabulary> vocabulary_;
  std::unique_ptr<engine::Embedder> embedder_;  // With --embeddings.
  Bell bell_;
  std::unique_ptr<reconfigure::ModelWorkshop> workshop_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<kv::SlotFiles> slot_files_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<api::Service> service_;
  std::thread thread_;
};

// "fermata 0.1.0 (libllama 0.4.0)"
std::string build_info();

}  // namespace fermata::app
