// Our server and, where the environment variable LLAMA_SERVER names one, a peer that takes
// llama-server's flags. Both run at once; whoever measures asks one of them at a time, in turns.
#pragma once

#include "base/result.h"
#include "bench/child_server.h"
#include "bench/report.h"

#include <memory>
#include <string>
#include <vector>

namespace fermata::bench {

struct Rivals {
  std::unique_ptr<ChildServer> ours;
  std::unique_ptr<ChildServer> peer;  // May be null.
};

// Both ready to answer. `ours_only` are flags that a peer does not know. Error: one line.
Result<Rivals, std::string> start_rivals(const std::vector<std::string>& args,
                                         const std::vector<std::string>& ours_only = {});

// What each of some rounds gave for us and for what we are compared with.
struct Pairs {
  std::vector<double> ours, theirs;

  double ratio() const;  // The median of the paired ratios. REQUIRES: not empty.
};

}  // namespace fermata::bench
