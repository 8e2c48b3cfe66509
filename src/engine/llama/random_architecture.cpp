#include "engine/llama/random_architecture.h"

#include "base/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <gguf.h>

namespace fermata::engine::llama {
namespace {

WeightLaw constant(double value) {
  return {WeightLaw::Shape::constant, static_cast<float>(value), 0};
}
WeightLaw normal(double deviation) {
  return {WeightLaw::Shape::normal, static_cast<float>(deviation), 0};
}
WeightLaw uniform(double low, double high) {
  return {WeightLaw::Shape::uniform, static_cast<float>(low), static_cast<float>(high)};
}

// Mamba's sizes follow from the width.
constexpr std::int64_t ssm_convolution = 4;
constexpr std::int64_t ssm_state = 16;
std::int64_t ssm_inner(const RandomModelShape& s) { return 2 * std::int64_t{s.width}; }
std::int64_t ssm_rank(const RandomModelShape& s) { return s.width / 16; }
constexpr std::int64_t short_convolution = 3;

// The tensors of one model, in file order. Gains: a matrix of gain g turns inputs of size one into
// outputs of size g.
class TensorList {
 public:
  // `shape` must outlive the list.
  explicit TensorList(const RandomModelShape& shape) : s_(shape) {}

  void begin_layer(std::int32_t index) { prefix_ = "blk." + std::to_string(index) + "."; }

  void matrix(const std::string& name, std::int64_t inputs, std::int64_t outputs, double gain) {
    tensors_.push_back({prefix_ + name + ".weight", inputs, outputs,
                        normal(gain / std::sqrt(static_cast<double>(inputs))), true});
  }
  void table(const std::string& name, std::int64_t columns, std::int64_t rows, WeightLaw law) {
    tensors_.push_back({prefix_ + name, columns, rows, law});
  }
  void vector(const std::string& name, std::int64_t size, WeightLaw law) {
    table(name, size, 0, law);
  }
  void norm(const std::string& name, std::int64_t size, double value = 1.0) {
    vector(name + ".weight", size, constant(value));
  }

  // An embedding is looked up, not summed over: its values have the size themselves.
  void embeddings(std::int64_t vocabulary, double size) {
    tensors_.push_back({"token_embd.weight", s_.width, vocabulary, normal(size), true});
  }
  void output(const std::string& norm_name, std::int64_t vocabulary, double gain) {
    prefix_.clear();
    norm(norm_name, s_.width);
    matrix("output", s_.width, vocabulary, gain);
    tensors_.back().is_per_token = true;
  }
  void attention(double qk_gain, double out_gain) {
    const std::int64_t kv_width = std::int64_t{s_.width / s_.heads} * s_.kv_heads;
    matrix("attn_q", s_.width, s_.width, qk_gain);
    matrix("attn_k", s_.width, kv_width, qk_gain);
    matrix("attn_v", s_.width, kv_width, 1.0);
    matrix("attn_output", s_.width, s_.width, out_gain);
  }
  void qk_norms(double qk_gain) {
    norm("attn_q_norm", s_.width / s_.heads, qk_gain);
    norm("attn_k_norm", s_.width / s_.heads, qk_gain);
  }
  void feed_forward(double out_gain) {
    norm("ffn_norm", s_.width);
    matrix("ffn_gate", s_.width, s_.feed_forward, 1.0);
    matrix("ffn_up", s_.width, s_.feed_forward, 1.0);
    matrix("ffn_down", s_.feed_forward, s_.width, out_gain);
  }

  std::vector<RandomTensor> take() { return std::move(tensors_); }

 private:
  const RandomModelShape& s_;
  std::string prefix_;
  std::vector<RandomTensor> tensors_;
};

// Attention scores have a deviation of `sharpness` squared, so that among a thousand tokens a
// handful decides: averaging over all of them would drown what one token says.
constexpr double sharpness = 1.7;
// Embeddings are smaller than what a layer adds, so that the history outweighs the last token.
constexpr double embedding_size = 0.7;
// Deviation of the logits; the best is then about 10, and the next best 0.8 below it.
constexpr double logit_size = 3.0;
// Multiplying two halves of a gate leaves about a third of the size; this makes up for it.
constexpr double gated_gain = 2.0;

void dense_layer(TensorList& t, const RandomModelShape& s) {
  t.norm("attn_norm", s.width);
  t.attention(sharpness, 1.0);
  t.feed_forward(gated_gain);
}

void sliding_window_layer(TensorList& t, const RandomModelShape& s) {
  t.norm("attn_norm", s.width);
  t.attention(1.0, 1.0);
  t.qk_norms(sharpness);
  t.norm("post_attention_norm", s.width);
  t.feed_forward(1.0);
  t.norm("post_ffw_norm", s.width);
}

void recurrent_layer(TensorList& t, const RandomModelShape& s) {
  const std::int64_t inner = ssm_inner(s);
  t.norm("attn_norm", s.width);
  t.matrix("ssm_in", s.width, 2 * inner, 1.0);
  t.table("ssm_conv1d.weight", ssm_convolution, inner, normal(0.5));
  t.vector("ssm_conv1d.bias", inner, constant(0));
  t.matrix("ssm_x", inner, ssm_rank(s) + 2 * ssm_state, 2.0);
  t.table("ssm_dt.weight", ssm_rank(s), inner, normal(0.3));
  // Per token a state fades by exp(a * softplus(dt)): from a memory of a few tokens to thousands.
  t.vector("ssm_dt.bias", inner, uniform(-4.0, -1.0));
  t.table("ssm_a", ssm_state, inner, uniform(-1.0, -0.01));
  t.vector("ssm_d", inner, constant(1.0));
  t.matrix("ssm_out", inner, s.width, gated_gain);
}

void hybrid_layer(TensorList& t, const RandomModelShape& s, bool attends) {
  t.norm("attn_norm", s.width);
  if (attends) {
    t.attention(1.0, 1.0);
    t.qk_norms(sharpness);
  } else {
    t.matrix("shortconv.in_proj", s.width, 3 * std::int64_t{s.width}, 1.0);
    t.table("shortconv.conv.weight", short_convolution, s.width, normal(0.6));
    t.matrix("shortconv.out_proj", s.width, s.width, 1.0);
  }
  t.feed_forward(gated_gain);
}

bool hybrid_attends(std::int32_t layer) { return layer % 2 == 1; }

const char* architecture(RandomModelKind kind) {
  switch (kind) {
    case RandomModelKind::dense:
      return "llama";
    case RandomModelKind::sliding_window:
      return "gemma3";
    case RandomModelKind::recurrent:
      return "mamba";
    case RandomModelKind::hybrid:
      return "lfm2";
  }
  check_failed("kind", "a kind that does not exist", __FILE__, __LINE__);
}

// Sets `<architecture>.<key>` values of a file.
class Metadata {
 public:
  Metadata(gguf_context* file, const char* architecture) : file_(file), prefix_(architecture) {}

  void set(const char* key, std::int64_t value) {
    gguf_set_val_u32(file_, name(key).c_str(), static_cast<std::uint32_t>(value));
  }
  void set(const char* key, float value) { gguf_set_val_f32(file_, name(key).c_str(), value); }
  void set(const char* key, const std::vector<std::uint32_t>& values) {
    gguf_set_arr_data(file_, name(key).c_str(), GGUF_TYPE_UINT32, values.data(), values.size());
  }

 private:
  std::string name(const char* key) const { return prefix_ + "." + key; }

  gguf_context* file_;
  std::string prefix_;
};

void set_attention(Metadata& m, const RandomModelSpec& spec) {
  const RandomModelShape& s = spec.shape;
  const std::int64_t head = s.width / s.heads;
  m.set("attention.head_count", std::int64_t{s.heads});
  m.set("attention.key_length", head);
  m.set("attention.value_length", head);
  m.set("rope.dimension_count", head);
  if (spec.kind == RandomModelKind::hybrid) {
    std::vector<std::uint32_t> kv_heads;
    for (std::int32_t i = 0; i < s.layers; ++i) {
      kv_heads.push_back(hybrid_attends(i) ? static_cast<std::uint32_t>(s.kv_heads) : 0);
    }
    m.set("attention.head_count_kv", kv_heads);
    m.set("shortconv.l_cache", short_convolution);
  } else {
    m.set("attention.head_count_kv", std::int64_t{s.kv_heads});
  }
  if (spec.kind == RandomModelKind::sliding_window) {
    m.set("attention.sliding_window", s.sliding_window.value);
    m.set("attention.sliding_window_pattern", std::int64_t{2});  // every second layer sees all
  }
}

void set_state_space(Metadata& m, const RandomModelShape& s) {
  m.set("ssm.conv_kernel", ssm_convolution);
  m.set("ssm.inner_size", ssm_inner(s));
  m.set("ssm.state_size", ssm_state);
  m.set("ssm.time_step_rank", ssm_rank(s));
}

}  // namespace

// Integers and one rounding per value: with or without fused multiplication the same numbers.
void draw_weights(Random& random, const WeightLaw& law, std::span<float> out) {
  switch (law.shape) {
    case WeightLaw::Shape::constant:
      std::fill(out.begin(), out.end(), law.low);
      return;
    case WeightLaw::Shape::uniform:
      for (float& x : out) {
        const double part = static_cast<double>(random() >> 48) / 65536;
        x = static_cast<float>(law.low + (double{law.high} - law.low) * part);
      }
      return;
    case WeightLaw::Shape::normal: {
      // The sum of four uniform 16-bit numbers is near enough to normal.
      constexpr std::int32_t mean = 2 * 65535;
      constexpr float deviation = 37837.23F;  // sqrt(4 * (2^32 - 1) / 12)
      const float scale = law.low / deviation;
      for (float& x : out) {
        const std::uint64_t r = random();
        const auto sum = static_cast<std::int32_t>((r & 0xffff) + (r >> 16 & 0xffff) +
                                                   (r >> 32 & 0xffff) + (r >> 48));
        x = scale * static_cast<float>(sum - mean);
      }
      return;
    }
  }
}

std::vector<RandomTensor> list_random_tensors(const RandomModelSpec& spec,
                                              std::int64_t vocabulary) {
  const RandomModelShape& s = spec.shape;
  TensorList t(s);
  // gemma3 multiplies embeddings by sqrt(width) itself.
  const bool is_scaled = spec.kind == RandomModelKind::sliding_window;
  t.embeddings(vocabulary, is_scaled ? embedding_size / std::sqrt(s.width) : embedding_size);
  for (std::int32_t i = 0; i < s.layers; ++i) {
    t.begin_layer(i);
    switch (spec.kind) {
      case RandomModelKind::dense:
        dense_layer(t, s);
        break;
      case RandomModelKind::sliding_window:
        sliding_window_layer(t, s);
        break;
      case RandomModelKind::recurrent:
        recurrent_layer(t, s);
        break;
      case RandomModelKind::hybrid:
        hybrid_layer(t, s, hybrid_attends(i));
        break;
    }
  }
  t.output(spec.kind == RandomModelKind::hybrid ? "token_embd_norm" : "output_norm", vocabulary,
           logit_size);
  return t.take();
}

void set_random_metadata(gguf_context* file, const RandomModelSpec& spec, std::int64_t vocabulary) {
  const RandomModelShape& s = spec.shape;
  const std::string name =
      std::string("random ") + architecture(spec.kind) + ", seed " + std::to_string(spec.seed);
  // The numbers of llama_ftype: all f32, mostly f16, mostly q8_0.
  constexpr std::array<std::uint32_t, 3> file_types = {0, 1, 7};
  gguf_set_val_str(file, "general.architecture", architecture(spec.kind));
  gguf_set_val_str(file, "general.type", "model");
  gguf_set_val_str(file, "general.name", name.c_str());
  gguf_set_val_str(file, "general.description", "Random weights, for tests and benchmarks only");
  gguf_set_val_u32(file, "general.file_type",
                   file_types.at(static_cast<std::size_t>(spec.weight_type)));
  gguf_set_val_u32(file, "general.quantization_version", GGML_QNT_VERSION);

  const bool recurrent = spec.kind == RandomModelKind::recurrent;
  Metadata m(file, architecture(spec.kind));
  m.set("vocab_size", vocabulary);
  m.set("context_length", s.context_length.value);
  m.set("embedding_length", std::int64_t{s.width});
  m.set("block_count", std::int64_t{s.layers});
  m.set("feed_forward_length", std::int64_t{recurrent ? 0 : s.feed_forward});
  m.set("attention.layer_norm_rms_epsilon", 1e-5F);
  if (recurrent) {
    set_state_space(m, s);
  } else {
    set_attention(m, spec);
  }
}

}  // namespace fermata::engine::llama
