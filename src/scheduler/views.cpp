#include "scheduler/views.h"

#include <algorithm>

namespace fermata::scheduler {
namespace {

Tokens length(const Request& request) {
  return Tokens(static_cast<std::int64_t>(request.prompt.size()));
}

}  // namespace

void find_starters(std::span<const std::unique_ptr<Sequence>> running,
                   std::vector<const Sequence*>& starters) {
  starters.clear();
  for (const auto& sequence : running) {
    const bool goes_on = !sequence->is_held() && sequence->channel().has_room();
    if (goes_on && sequence->prompt_left() > Tokens(0)) starters.push_back(sequence.get());
  }
}

bool goes_row_by_row(const Sequence& sequence, bool same_shapes) {
  if (sequence.phase() == policy::Phase::decode) return true;
  return same_shapes && sequence.prompt_left() == Tokens(0);
}

Tokens cells_needed(const Request& request, const engine::Engine& engine) {
  if (!engine.capabilities().cells_per_token) return Tokens(0);
  const Tokens prompt = length(request);
  // The last token of a reply is never computed, and a reply ends before the window's last cell.
  const Tokens most = engine.limits().window - Tokens(1);
  if (request.max_tokens < Tokens(0)) return most;
  if (request.max_tokens >= most) return most;  // Also keeps the sum below from overflowing.
  return std::min(std::max(prompt + request.max_tokens - Tokens(1), prompt), most);
}

Tokens worst_case(const Request& request, const engine::Engine& engine) {
  return std::max(cells_needed(request, engine), length(request));
}

}  // namespace fermata::scheduler
