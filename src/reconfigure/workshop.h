// Where engines of one model are built and freed while another one serves.
#pragma once

#include "base/result.h"
#include "engine/model.h"
#include "reconfigure/change.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fermata::reconfigure {

// The engine stays the workshop's. Error: one line; what was there before is as it was.
using Built = Result<engine::Engine*, std::string>;

// The scheduler thread's own; outlives the scheduler.
class Workshop {
 public:
  virtual ~Workshop() = default;

  // Builds on the side; the result comes by take(), once. REQUIRES: none is being built.
  virtual void begin(const Geometry& geometry) = 0;
  virtual std::optional<Built> take() = 0;
  // Builds here and now.
  virtual Built build(const Geometry& geometry) = 0;
  // Frees an engine of its own: here and now, or on the side.
  virtual void remove(engine::Engine& engine) = 0;
  virtual void discard(engine::Engine& engine) = 0;
  // Gives back to the machine what no engine needs any more, and the weights if asked; the next
  // build loads them again. REQUIRES: there is no engine, and none is being built.
  virtual void release_memory(bool weights) = 0;

  virtual Cost cost(const Geometry& now, const Geometry& to) const = 0;
  // KV bytes of one token, and whose states those of a geometry are.
  virtual Bytes bytes_per_token(const Geometry& geometry) const = 0;
  virtual engine::Fingerprint fingerprint(const Geometry& geometry) const = 0;
};

struct WorkshopOptions {
  engine::EngineOptions engine;
  // Made of every engine before it is handed out: warmed up, or made to fail. On the thread that
  // built it.
  std::function<std::unique_ptr<engine::Engine>(std::unique_ptr<engine::Engine>)> dress;
  std::function<std::optional<Bytes>()> available_memory;  // May be empty.
  std::function<void()> wake;  // take() has something. On a thread of the workshop.
};

// On a thread of its own for each engine that is built or freed on the side.
class ModelWorkshop final : public Workshop {
 public:
  // The model outlives the workshop.
  ModelWorkshop(engine::Model& model, WorkshopOptions options);
  ~ModelWorkshop() override;
  ModelWorkshop(const ModelWorkshop&) = delete;
  ModelWorkshop& operator=(const ModelWorkshop&) = delete;

  // From now on so many builds fail, for tests.
  void set_faults(int percent) { fault_percent_ = percent; }

  void begin(const Geometry& geometry) override;
  std::optional<Built> take() override;
  Built build(const Geometry& geometry) override;
  void remove(engine::Engine& engine) override;
  void discard(engine::Engine& engine) override;
  void release_memory(bool weights) override;
  Cost cost(const Geometry& now, const Geometry& to) const override;
  Bytes bytes_per_token(const Geometry& geometry) const override;
  engine::Fingerprint fingerprint(const Geometry& geometry) const override;

 private:
  using Made = Result<std::unique_ptr<engine::Engine>, std::string>;

  Made make(const Geometry& geometry);
  Built keep(Made made);
  std::unique_ptr<engine::Engine> give_up(engine::Engine& engine);
  Bytes needed(const Geometry& geometry) const;

  engine::Model& model_;
  const WorkshopOptions options_;
  std::vector<std::unique_ptr<engine::Engine>> engines_;
  std::thread builder_;
  std::thread remover_;
  std::atomic<bool> is_ready_{false};
  std::optional<Made> made_;  // The builder's until is_ready_.
  int fault_percent_ = 0;
  std::uint64_t builds_ = 0;
};

}  // namespace fermata::reconfigure
