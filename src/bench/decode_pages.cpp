// decode-pages: the speed of one stream while the turn before it is stored, against a server that
// stores nothing.
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/rivals.h"
#include "bench/scratch.h"
#include "bench/turns.h"
#include "bench/workloads.h"

namespace fermata::bench {
namespace {

constexpr int stored_tokens = 512, prompt_tokens = 32, stream_tokens = 192;

// Tokens per second between the first event and the last of a stream that comes right after
// another turn. Each number has conversations of its own.
Result<double, std::string> speed(int port, int number) {
  const auto before = take_turn(port, prompt_of(stored_tokens, 2 * number), 2);
  if (!before) return Err(before.error());
  const auto stream =
      stream_completion(port, turn(prompt_of(prompt_tokens, 2 * number + 1), stream_tokens));
  if (!stream) return Err(stream.error());
  if (stream->events.size() < 2) return Err(std::string("too few events to measure"));
  const Micros took = stream->events.back() - stream->events.front();
  return static_cast<double>(stream->events.size() - 1) * 1e6 / static_cast<double>(took.value);
}

}  // namespace

Result<Json, std::string> run_decode_pages(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  const auto folder = ScratchFolder::make();
  if (!folder) return Err(folder.error());
  std::vector<std::string> args = {"-m",        *model,     "-t",   std::to_string(options.threads),
                                   "--no-mmap", "-c",       "8192", "-np",
                                   "4",         "--metrics"};
  const auto plain = ChildServer::start(args);
  if (!plain) return Err(plain.error());
  args.insert(args.end(), {"--page-dir", (*folder)->path().string()});
  const auto storing = ChildServer::start(args);
  if (!storing) return Err(storing.error());
  const int ports[] = {(*storing)->port(), (*plain)->port()};

  Pairs pairs;
  for (int pair = 0; pair <= options.pairs; ++pair) {
    double tokens_per_s[2] = {};
    for (const int turn : {0, 1}) {
      const int side = (pair + turn) % 2;  // Who is first is taken in turns.
      const auto measured = speed(ports[side], pair);
      if (!measured) return Err(measured.error());
      tokens_per_s[side] = *measured;
    }
    progress("decode-pages pair " + std::to_string(pair) + ": " + std::to_string(tokens_per_s[0]) +
             " tok/s, without pages " + std::to_string(tokens_per_s[1]) +
             (pair == 0 ? " (warm-up, not counted)" : ""));
    if (pair == 0) continue;
    pairs.ours.push_back(tokens_per_s[0]);
    pairs.theirs.push_back(tokens_per_s[1]);
  }
  const auto written = read_metric(ports[0], "fermata_store_written_bytes_total");
  if (!written) return Err(written.error());
  return Json{{"workload", "decode-pages"},
              {"ratio", pairs.ratio()},
              {"ratio_of", "tokens/s of one stream with --page-dir over those without"},
              {"tokens_per_s", median(pairs.ours)},
              {"plain_tokens_per_s", median(pairs.theirs)},
              {"written_bytes", static_cast<std::int64_t>(*written)},
              {"threads", options.threads},
              {"pairs", options.pairs}};
}

}  // namespace fermata::bench
