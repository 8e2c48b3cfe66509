#include "bench/rivals.h"

#include "base/check.h"
#include "bench/client.h"

#include <cstdlib>

namespace fermata::bench {

Result<Rivals, std::string> start_rivals(const std::vector<std::string>& args,
                                         const std::vector<std::string>& ours_only) {
  Rivals out;
  std::vector<std::string> ours = args;
  ours.insert(ours.end(), ours_only.begin(), ours_only.end());
  auto server = ChildServer::start(ours);
  if (!server) return Err(server.error());
  out.ours = std::move(*server);
  if (const char* program = std::getenv("LLAMA_SERVER")) {
    auto peer = ChildServer::start_peer(program, args);
    if (!peer) return Err(peer.error());
    out.peer = std::move(*peer);
  }
  for (const auto* each : {&out.ours, &out.peer}) {
    if (*each == nullptr) continue;
    const auto ready = stream_completion((*each)->port(), plain_request(99, 4));
    if (!ready) return Err(ready.error());
  }
  return out;
}

double Pairs::ratio() const {
  FERMATA_CHECK(!ours.empty() && ours.size() == theirs.size(), "a ratio of nothing");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / theirs[i]);
  return median(ratios);
}

}  // namespace fermata::bench
