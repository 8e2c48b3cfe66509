#include "reconfigure/workshop.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/random.h"

#include <algorithm>
#include <utility>

namespace fermata::reconfigure {
namespace {

// Beside the cells: graphs, outputs, buffers of one ubatch. More than was ever measured.
constexpr Bytes aside{std::int64_t{256} << 20};

}  // namespace

ModelWorkshop::ModelWorkshop(engine::Model& model, WorkshopOptions options)
    : model_(model), options_(std::move(options)) {}

ModelWorkshop::~ModelWorkshop() {
  if (builder_.joinable()) builder_.join();
  if (remover_.joinable()) remover_.join();
}

ModelWorkshop::Made ModelWorkshop::make(const Geometry& geometry) {
  Random random(++builds_);
  if (random.chance(fault_percent_)) {
    return Err(std::string("the build failed on purpose (--inject-build-faults)"));
  }
  auto engine = model_.build(geometry, options_.engine);
  if (!engine) return Err(engine.error().message);
  return options_.dress ? options_.dress(std::move(engine).value()) : std::move(engine).value();
}

Built ModelWorkshop::keep(Made made) {
  if (!made) return Err(made.error());
  engines_.push_back(std::move(made).value());
  return engines_.back().get();
}

std::unique_ptr<engine::Engine> ModelWorkshop::give_up(engine::Engine& engine) {
  const auto found = std::ranges::find(engines_, &engine, &std::unique_ptr<engine::Engine>::get);
  FERMATA_CHECK(found != engines_.end(), "an engine that is not the workshop's");
  std::unique_ptr<engine::Engine> out = std::move(*found);
  engines_.erase(found);
  return out;
}

void ModelWorkshop::begin(const Geometry& geometry) {
  FERMATA_CHECK(!builder_.joinable(), "two builds at once");
  is_ready_ = false;
  builder_ = std::thread([this, geometry] {
    made_ = make(geometry);
    is_ready_.store(true, std::memory_order_release);
    if (options_.wake) options_.wake();
  });
}

std::optional<Built> ModelWorkshop::take() {
  if (!builder_.joinable() || !is_ready_.load(std::memory_order_acquire)) return std::nullopt;
  builder_.join();
  return keep(*std::exchange(made_, std::nullopt));
}

Built ModelWorkshop::build(const Geometry& geometry) { return keep(make(geometry)); }

void ModelWorkshop::remove(engine::Engine& engine) { give_up(engine).reset(); }

void ModelWorkshop::discard(engine::Engine& engine) {
  if (remover_.joinable()) remover_.join();
  remover_ = std::thread([engine = give_up(engine)]() mutable {
    engine.reset();
    trim_heap();  // What is left in the heaps of several threads would add up over many changes.
  });
}

void ModelWorkshop::release_memory(bool weights) {
  if (remover_.joinable()) remover_.join();
  FERMATA_CHECK(engines_.empty() && !builder_.joinable(), "an engine is there");
  if (weights) model_.sleep();
  trim_heap();
}

Bytes ModelWorkshop::needed(const Geometry& geometry) const {
  return bytes_per_token(geometry) * geometry.n_ctx.value + aside;
}

Cost ModelWorkshop::cost(const Geometry& now, const Geometry& to) const {
  Cost out{.needed = needed(to), .freed = needed(now), .available = {}};
  if (options_.available_memory) out.available = options_.available_memory();
  return out;
}

Bytes ModelWorkshop::bytes_per_token(const Geometry& geometry) const {
  return model_.bytes_per_token(geometry.cache_type_k, geometry.cache_type_v);
}

engine::Fingerprint ModelWorkshop::fingerprint(const Geometry& geometry) const {
  return model_.fingerprint(geometry.cache_type_k, geometry.cache_type_v);
}

}  // namespace fermata::reconfigure
