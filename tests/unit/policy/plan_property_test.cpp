// Random worlds: whatever is resident, waits and runs, the plan keeps its promises.
#include "unit/policy/world.h"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata::policy {
namespace {

// In [low, high), as likely large as small from the first case on.
template <class T>
T draw(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

// Two letters, so that texts often begin alike without sharing cells.
std::string some_text(int least, int most) {
  return *rc::gen::container<std::string>(static_cast<std::size_t>(draw(least, most + 1)),
                                          rc::gen::element('a', 'b'));
}

struct Scene {
  World::Memory memory;
  int n_seats;
  World world;

  Scene(const World::Memory& kind, int seats, std::int64_t cells)
      : memory(kind), n_seats(seats), world(seats, cells, kind) {}

  bool pooled() const { return memory.layout == Layout::pooled; }

  // Somebody comes to a seat, maybe on another's cells; undone when the cells are not there.
  void occupy() {
    const int seat = draw(0, n_seats), from = draw(0, n_seats);
    world.clear(seat);
    std::size_t shared = 0;
    if (seat != from && pooled() && memory.cuts_and_shares) {
      shared = draw<std::size_t>(0, world.text(from).size() + 1);
    }
    const std::string rest = some_text(shared > 0 ? 0 : 1, 25);
    const auto length = static_cast<std::int64_t>(shared + rest.size());
    if (!pooled() && Tokens(length) > world.window()) return;
    if (*rc::gen::arbitrary<bool>()) {
      world.idle_shared(seat, from, shared, rest, draw(0, 10));
    } else {
      world.busy_shared(seat, from, shared, rest, length + draw(0, 15));
    }
    if (pooled() && world.unpromised() < Tokens(0)) world.clear(seat);
  }

  // Mostly on the beginning of what a seat holds.
  void arrive(std::uint64_t id) {
    const std::string& known = world.text(draw(0, n_seats));
    std::string prompt = known.substr(0, draw<std::size_t>(0, known.size() + 1)) + some_text(1, 6);
    prompt.resize(std::min(prompt.size(), static_cast<std::size_t>(world.window().value - 1)));
    std::optional<Seat> pinned;
    if (draw(0, 4) == 0) pinned = Seat(draw(0, n_seats));
    const int max_tokens = draw(0, 8) == 0 ? -1 : draw(0, 15);
    world.wait(id, prompt, max_tokens, pinned);
  }

  void run_somebody(std::uint64_t id) {
    RunningView running;
    running.id = RequestId(id);
    running.phase = *rc::gen::element(Phase::prefill, Phase::decode);
    if (running.phase == Phase::prefill) running.rows_left = Tokens(draw(1, 200));
    running.blocked = draw(0, 4) == 0;
    world.run(running);
  }
};

Scene some_scene(const World::Memory& memory) {
  Scene scene(memory, draw(1, 7), draw(40, 100));
  const int residents = draw(0, 15);
  for (int i = 0; i < residents; ++i) scene.occupy();
  const int waiting = draw(0, 8);
  for (int i = 0; i < waiting; ++i) scene.arrive(static_cast<std::uint64_t>(i));
  const int running = draw(0, 8);
  for (int i = 0; i < running; ++i) scene.run_somebody(100 + static_cast<std::uint64_t>(i));
  scene.world.batch_max = Tokens(draw(1, 100));
  scene.world.step_budget = Micros(draw(0, 1000));
  scene.world.rates = {Micros(draw(0, 200)), Micros(draw(0, 5000))};
  return scene;
}

bool equal(const Plan& a, const Plan& b) {
  const auto admission = [](const Admission& x, const Admission& y) {
    return std::tie(x.id, x.seat, x.source, x.reuse) == std::tie(y.id, y.seat, y.source, y.reuse);
  };
  const auto run = [](const Run& x, const Run& y) {
    return x.running == y.running && x.rows == y.rows;
  };
  return a.evict == b.evict &&
         std::equal(a.admit.begin(), a.admit.end(), b.admit.begin(), b.admit.end(), admission) &&
         std::equal(a.run.begin(), a.run.end(), b.run.begin(), b.run.end(), run);
}

bool touches(const Plan& plan, Seat seat) {
  return std::any_of(plan.admit.begin(), plan.admit.end(), [&](const Admission& admission) {
    return admission.seat == seat || admission.source == seat;
  });
}

// Whoever is evicted has been unused at least as long as any idle seat that stays.
void check_order_of_eviction(const View& view, const Plan& plan) {
  for (const SeatView& stays : view.seats) {
    const bool gone =
        std::find(plan.evict.begin(), plan.evict.end(), stays.seat) != plan.evict.end();
    if (stays.use != SeatUse::idle || gone || touches(plan, stays.seat)) continue;
    for (Seat seat : plan.evict) {
      const auto at = static_cast<std::size_t>(seat.value);
      RC_ASSERT(view.seats[at].last_used <= stays.last_used);
    }
  }
}

// The first in line starts as soon as its seat is free and the cells of the busy leave room.
void check_head_of_line(const View& view, const Plan& plan) {
  const auto head = std::find_if(view.waiting.begin(), view.waiting.end(),
                                 [](const WaitingView& w) { return !w.prefixes.empty(); });
  if (head == view.waiting.end()) {
    RC_ASSERT(plan.admit.empty());
    return;
  }
  const Tokens room = view.cells - view.cells_busy - view.cells_outstanding;
  if (view.layout == Layout::pooled && head->need > Tokens(0) && head->need > room) return;
  RC_ASSERT(!plan.admit.empty());
  RC_ASSERT(plan.admit[0].id == head->id);
}

// Nobody is passed but those whose own seat is taken.
void check_nobody_is_passed(const View& view, const Plan& plan) {
  std::size_t next = 0;
  for (const WaitingView& waiting : view.waiting) {
    if (next == plan.admit.size()) return;
    if (plan.admit[next].id == waiting.id) {
      ++next;
      continue;
    }
    RC_ASSERT(waiting.seat.has_value());
    const auto at = static_cast<std::size_t>(waiting.seat->value);
    const bool taken_now =
        std::any_of(plan.admit.begin(), plan.admit.begin() + static_cast<std::ptrdiff_t>(next),
                    [&](const Admission& admission) { return admission.seat == *waiting.seat; });
    RC_ASSERT(view.seats[at].use == SeatUse::busy || taken_now);
  }
}

void check_rows(const View& view, const Plan& plan) {
  Tokens decode{0}, total{0};
  for (const RunningView& running : view.running) {
    decode += Tokens(running.phase == Phase::decode && !running.blocked ? 1 : 0);
  }
  Tokens planned_decode{0};
  for (const Run& run : plan.run) {
    total += run.rows;
    if (view.running[run.running].phase == Phase::decode) planned_decode += run.rows;
  }
  RC_ASSERT(total <= view.batch_max);
  RC_ASSERT(planned_decode == std::min(decode, view.batch_max));
  const bool anyone = std::any_of(view.running.begin(), view.running.end(),
                                  [](const RunningView& running) { return !running.blocked; });
  RC_ASSERT(anyone == !plan.run.empty());
}

void check_one(const World::Memory& memory) {
  Scene scene = some_scene(memory);
  const View view = scene.world.view();
  Plan plan, again;
  plan_worst_case(view, plan);
  plan_worst_case(view, again);
  plan_worst_case(view, again);
  RC_ASSERT(equal(plan, again));
  RC_ASSERT(find_fault(view, plan).value_or("") == "");
  check_head_of_line(view, plan);
  check_nobody_is_passed(view, plan);
  check_order_of_eviction(view, plan);
  check_rows(view, plan);
  RC_ASSERT(scene.world.apply(plan) == "");
  // One more tick on what the first one left.
  const View next = scene.world.view();
  plan_worst_case(next, plan);
  RC_ASSERT(find_fault(next, plan).value_or("") == "");
  RC_ASSERT(scene.world.apply(plan) == "");
}

void plan_is_right(const World::Memory& memory) {
  for (int scene = 0; scene < 10; ++scene) check_one(memory);
}

RC_GTEST_PROP(PlanProperty, KeepsItsPromisesPooled, ()) { plan_is_right({}); }
RC_GTEST_PROP(PlanProperty, KeepsItsPromisesSplit, ()) { plan_is_right({.layout = Layout::split}); }
RC_GTEST_PROP(PlanProperty, KeepsItsPromisesWithoutCells, ()) {
  plan_is_right({.cells_per_token = false, .cuts_and_shares = false});
}
RC_GTEST_PROP(PlanProperty, KeepsItsPromisesWithoutSharing, ()) {
  plan_is_right({.cuts_and_shares = false});
}

}  // namespace
}  // namespace fermata::policy
