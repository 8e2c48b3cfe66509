// Makes GGUF models with random weights, for tests and benchmarks: one of every memory kind, a few
// megabytes in size, with the tokenizer of a real model so that text works. What such a model says
// means nothing, but it is lively: greedy output does not settle on one token, and what a sequence
// remembers decides what comes next, so a lost or swapped cell shows up in the text.
//
// The generator is our own integer arithmetic: one spec gives the same bytes on every run.
// Weights come from `seed` alone; another seed is another model of the same shape (a "wrong model"
// for tests that must tell two apart).
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <cstdint>
#include <functional>
#include <string>

namespace fermata::engine::llama {

// What a sequence leaves behind in the model's memory, and the architecture that stands for it.
enum class RandomModelKind : std::uint8_t {
  dense,           // llama: K and V of every token
  sliding_window,  // gemma3: layers with a window of the last tokens, every other with all of them
  recurrent,       // mamba: one state of fixed size per layer
  hybrid,          // lfm2: short-convolution layers (a state), every other an attention layer
};

// How matrices are stored. Vectors, convolutions and what q8_0 cannot hold stay f32.
enum class WeightType : std::uint8_t { f32, f16, q8_0 };

struct RandomModelShape {
  std::int32_t layers = 4;
  std::int32_t width = 128;         // embedding length; a multiple of 32 x heads
  std::int32_t heads = 4;           // not used by recurrent
  std::int32_t kv_heads = 2;        // divides heads; not used by recurrent
  std::int32_t feed_forward = 256;  // a multiple of 32; not used by recurrent
  // Tokens in the vocabulary; 0: as many as the tokenizer has. More than that are filled up with
  // unused tokens, which text never contains and greedy sampling never picks.
  std::int32_t vocabulary = 0;
  Tokens context_length{8192};
  Tokens sliding_window{64};  // used by sliding_window only
};

struct RandomModelSpec {
  RandomModelKind kind = RandomModelKind::dense;
  std::uint64_t seed = 1;
  RandomModelShape shape;
  WeightType weight_type = WeightType::f32;
  // A GGUF file; its tokenizer.* metadata (vocabulary, merges, special tokens, chat template) is
  // copied. Tokens that are not plain text get no output weights: greedy output never ends early.
  std::string tokenizer_from;
};

// 4 layers of width 128 in f32, about 4 MB with a vocabulary of 1,280.
RandomModelSpec tiny_random_model(RandomModelKind kind, std::string tokenizer_from,
                                  std::uint64_t seed = 1);

// A dense model of the size people serve on small machines: 24 layers of width 1,024, 16/8 heads,
// 32,000 tokens, 349 million parameters, q8_0, 372 MB.
RandomModelSpec bench_350m_model(std::string tokenizer_from, std::uint64_t seed = 1);

struct RandomModelInfo {
  std::int64_t parameters = 0;
  Bytes file_size;
};

// Called on the caller's thread, at least once per tensor.
using RandomModelProgress = std::function<void(Bytes written, Bytes total)>;

// Writes the model to `path`, replacing a file of that name. The bytes go to a temporary file next
// to it, which is renamed when it is complete and on disk: `path` is never a half model (a killed
// process leaves a *.part file behind). Needs no backend and no more than 20 MB of memory.
// Error: one line that tells what and why (a shape that no model can have, a tokenizer that cannot
// be read, a file that cannot be written); `path` is as before.
// Call it while no other thread uses libllama: its log is turned off while the tokenizer is read.
Result<RandomModelInfo, std::string> write_random_model(const RandomModelSpec& spec,
                                                        const std::string& path,
                                                        const RandomModelProgress& progress = {});

}  // namespace fermata::engine::llama
