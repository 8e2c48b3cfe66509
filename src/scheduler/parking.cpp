// The scheduler's part in parking: carries out what the policy decided.
#include "base/check.h"
#include "scheduler/scheduler.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace fermata::scheduler {

void Scheduler::view_parked() {
  views_.parked.clear();
  for (const auto& sequence : parked_) {
    const Request& request = sequence->request();
    views_.parked.push_back(
        {request.id, sequence->computed(), sequence->rows_left(),
         sequence->image().has_bytes() ? policy::ParkMode::swap : policy::ParkMode::recompute,
         seat_wanted(request, pool_.seats()), sequence->remaining(), sequence->parked_at(),
         !sequence->channel().has_room(), request.priority, sequence->is_held(), sequence->group(),
         shared_with_first(*sequence),
         options_.overcommit ? Tokens(0) : worst_case(request, engine_),
         sequence->image().is_away()});
  }
}

// Of a group's images, what comes back in the cells of the first.
Tokens Scheduler::shared_with_first(const Sequence& parked) const {
  if (parked.group() == GroupId()) return Tokens(0);
  const auto first = std::find_if(parked_.begin(), parked_.end(), [&](const auto& other) {
    return other->group() == parked.group();
  });
  return first->get() == &parked ? Tokens(0) : kv::shared(first->get()->image(), parked.image());
}

// Those of one group at once, so that what they share is stored once.
void Scheduler::park(const policy::Plan& plan) {
  std::array<Seat, n_parallel_max + 1> seats;
  for (std::size_t begin = 0, end = 0; begin < plan.park.size(); begin = end) {
    const policy::Park& first = plan.park[begin];
    const GroupId group = running_[first.running]->group();
    do {
      seats[end - begin] = running_[plan.park[end].running]->seat();
      ++end;
    } while (end < plan.park.size() && group != GroupId() && plan.park[end].mode == first.mode &&
             running_[plan.park[end].running]->group() == group);
    const Micros began = clock_.now();
    images_.clear();
    pool_.images(std::span(seats).first(end - begin), first.mode == policy::ParkMode::swap,
                 images_);
    const Micros each = (clock_.now() - began) / static_cast<std::int64_t>(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      park(plan.park[i], std::move(images_[i - begin]), each);
    }
  }
}

// A copy that fails, or is larger than the budget, falls through to computing again.
void Scheduler::park(const policy::Park& park, kv::Image image, Micros took) {
  Sequence& sequence = *running_[park.running];
  const Seat seat = sequence.seat();
  policy::ParkMode mode = park.mode;
  const Bytes expected = bytes_per_token_ * sequence.computed().value;
  image_overhead_ = std::max(image_overhead_, image.size() - expected);
  if (mode == policy::ParkMode::swap &&
      !spilling_.put(sequence.request(), image, price_of(sequence.computed()))) {
    image.pieces.clear();
  }
  if (image.pieces.empty() && !image.tokens.empty()) mode = policy::ParkMode::recompute;
  pool_.release(seat, false, clock_.now());
  const auto reason = static_cast<std::size_t>(park.reason);
  if (mode == policy::ParkMode::swap) {
    stats_.parks_swap.add();
    stats_.swaps_by_reason[reason].add();
    stats_.swap_out.observe(took);
  } else {
    stats_.parks_recompute.add();
    stats_.recomputes_by_reason[reason].add();
  }
  sequence.park(mode, std::move(image), clock_.now());
  parked_.push_back(std::move(running_[park.running]));
}

void Scheduler::resume(const policy::Plan& plan) {
  for (const policy::Resume& resume : plan.resume) {
    Sequence& sequence = *parked_[resume.parked];
    const Tokens kept = pool_.take(resume.seat, Tokens(0));
    FERMATA_CHECK(kept == Tokens(0), "a cleared seat holds tokens");
    const Micros began = clock_.now();
    stats_.parked_time.observe(began - sequence.parked_at());
    const Bytes bytes = sequence.image().size();
    pool_.give_to(resume.seat, sequence.request().owner, sequence.request().conversation);
    const Tokens restored = pool_.restore(resume.seat, sequence.take_image());
    spilling_.forget(sequence.request().id);
    if (restored > Tokens(0)) {
      stats_.swap_in.observe(clock_.now() - began);
      pace_.observe_move(bytes, clock_.now() - began);
    }
    sequence.resume(resume.seat, restored, promise(resume.seat, sequence.request()), clock_.now());
    stats_.resumes.add();
    last_request_[static_cast<std::size_t>(resume.seat.value)] = sequence.shared_request();
    running_.push_back(std::move(parked_[resume.parked]));
  }
}

void Scheduler::mirror(const policy::Plan& plan) {
  if (plan.mirror.empty()) return;
  const Micros began = clock_.now();
  std::int32_t blocks = 0;
  for (const policy::Mirror& mirror : plan.mirror) {
    blocks += pool_.mirror_next(running_[mirror.running]->seat()) ? 1 : 0;
  }
  copy_pace_.copied(clock_.now() - began, blocks);
  stats_.blocks_mirrored.add(static_cast<std::uint64_t>(blocks));
}

void Scheduler::publish_parked(Status& status) {
  stats_.parked.set(static_cast<std::int64_t>(parked_.size()));
  stats_.parked_bytes.set(pool_.vault().parked().value);
  stats_.mirrored_bytes.set(pool_.vault().mirrored().value);
  Bytes away{0};
  for (const auto& sequence : parked_) {
    if (sequence->image().is_away()) away += sequence->image().size();
  }
  stats_.spilled_bytes.set(away.value);
  std::int64_t held = 0;
  status.parked.clear();
  for (const auto* list : {&parked_, &waiting_}) {
    const bool queued = list == &waiting_;
    for (const auto& sequence : *list) {
      held += sequence->is_held();
      if (queued && !sequence->is_held()) continue;
      const Parking& parking = sequence->parking();
      const bool swapped = !queued && sequence->park_mode() == policy::ParkMode::swap;
      status.parked.push_back({sequence->shared_request(), sequence->computed(),
                               sequence->predicted(), sequence->remaining(), parking.swaps,
                               parking.recomputes, swapped, sequence->is_held(), queued,
                               sequence->has_new_line(), sequence->text()});
    }
  }
  stats_.held.set(held);
}

}  // namespace fermata::scheduler
