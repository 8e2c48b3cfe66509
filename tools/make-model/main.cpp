// make-model: writes a GGUF model with random weights, for tests and benchmarks.
#include "engine/llama/random_model.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace {

using fermata::Bytes;
using fermata::engine::llama::bench_350m_model;
using fermata::engine::llama::RandomModelKind;
using fermata::engine::llama::RandomModelSpec;
using fermata::engine::llama::tiny_random_model;
using fermata::engine::llama::write_random_model;

struct Options {
  std::string kind;
  std::string out;
  std::uint64_t seed = 1;
  std::string tokenizer = "models/fermata-tiny.gguf";
};

constexpr const char* bench_kind = "bench-350m";
const std::map<std::string, RandomModelKind> tiny_kinds = {
    {"dense", RandomModelKind::dense},
    {"sliding-window", RandomModelKind::sliding_window},
    {"recurrent", RandomModelKind::recurrent},
    {"hybrid", RandomModelKind::hybrid},
};

// Why `text` is no seed; empty when it is one.
std::string seed_fault(const std::string& text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  return error == std::errc() && stop == end
             ? std::string()
             : "'" + text + "' is not a whole number from 0 to 18446744073709551615";
}

void describe(CLI::App& app, Options& options) {
  app.get_formatter()->column_width(26);
  app.add_option("KIND", options.kind,
                 "dense, sliding-window, recurrent or hybrid: tiny (about 4 MB), one of each kind "
                 "of memory; bench-350m: dense, 349 million parameters in q8_0 (372 MB)")
      ->required()
      ->check([](const std::string& kind) {
        return kind == bench_kind || tiny_kinds.contains(kind)
                   ? std::string()
                   : "'" + kind +
                         "' is none of dense, sliding-window, recurrent, hybrid, bench-350m";
      });
  app.add_option("OUT", options.out, "The file to write; replaced when it exists")->required();
  app.add_option("--seed", options.seed,
                 "Of the weights: equal seeds give equal files, another seed another model")
      ->check(seed_fault)
      ->capture_default_str();
  app.add_option("--tokenizer", options.tokenizer,
                 "GGUF model whose vocabulary and chat template are taken over")
      ->capture_default_str();
  app.footer("Progress goes to standard error. Exit code: 0 when OUT is complete, else 1.");
}

RandomModelSpec to_spec(const Options& options) {
  return options.kind == bench_kind
             ? bench_350m_model(options.tokenizer, options.seed)
             : tiny_random_model(tiny_kinds.at(options.kind), options.tokenizer, options.seed);
}

int fail(const std::string& why) {
  std::fprintf(stderr, "make-model: %s\n", why.c_str());
  return 1;
}

int make(const Options& options) {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  std::int64_t shown_percent = -1;
  const auto show = [&](Bytes written, Bytes total) {
    const std::int64_t percent = written.value * 100 / total.value;
    if (is_terminal && percent != shown_percent) {
      shown_percent = percent;
      std::fprintf(stderr, "\r%s: %d %%", options.out.c_str(), static_cast<int>(percent));
    }
  };
  const auto info = write_random_model(to_spec(options), options.out, show);
  if (shown_percent >= 0) {
    std::fputs("\r\x1b[K", stderr);
  }
  if (!info) {
    return fail(info.error());
  }
  std::fprintf(stderr, "%s: %.1f million parameters, %.1f MB\n", options.out.c_str(),
               static_cast<double>(info->parameters) / 1e6,
               static_cast<double>(info->file_size.value) / 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes GGUF models with random weights, for tests and benchmarks.", "make-model");
  Options options;
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return fail(std::string(e.what()) + " (see --help)");
  }
  return make(options);
}
