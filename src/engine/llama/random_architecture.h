// What the four architectures of random models consist of: the tensors, with the law by which their
// values are drawn, and the metadata that makes libllama expect just these. No files, no state.
#pragma once

#include "base/random.h"
#include "engine/llama/random_model.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

struct gguf_context;

namespace fermata::engine::llama {

// How the values of one tensor are drawn.
struct WeightLaw {
  enum class Shape : std::uint8_t { constant, normal, uniform };
  Shape shape;
  float low;   // constant: the value; normal: the standard deviation; uniform: the lower end
  float high;  // uniform: the upper end
};

struct RandomTensor {
  std::string name;
  std::int64_t columns;  // ggml's innermost dimension: the inputs of a matrix
  std::int64_t rows;     // 0: a vector
  WeightLaw law;
  bool is_matrix = false;     // multiplied with activations: stored in the model's weight type
  bool is_per_token = false;  // row i belongs to token i; rows of silent tokens are zero
};

// The tensors of a model with `vocabulary` tokens, in file order.
// REQUIRES: a shape that write_random_model accepts; vocabulary > 0.
std::vector<RandomTensor> list_random_tensors(const RandomModelSpec& spec, std::int64_t vocabulary);

// Sets the general.* and architecture keys of `file`. REQUIRES: as list_random_tensors.
void set_random_metadata(gguf_context* file, const RandomModelSpec& spec, std::int64_t vocabulary);

// Fills `out` with the next values of `random`; the same values on every machine.
void draw_weights(Random& random, const WeightLaw& law, std::span<float> out);

}  // namespace fermata::engine::llama
