#include "engine/llama/bare_loop.h"

#include "base/check.h"
#include "base/clock.h"
#include "core/geometry.h"
#include "engine/llama/log_sink.h"
#include "engine/llama/sampler.h"
#include "engine/llama/threadpool.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <llama-cpp.h>

namespace fermata::engine::llama {
namespace {

llama_context_params params_for(Tokens cells, std::int32_t sequences,
                                const EngineOptions& options) {
  llama_context_params params = llama_context_default_params();
  const auto most = static_cast<std::uint32_t>(sequences);
  params.n_ctx = static_cast<std::uint32_t>(cells.value);
  params.n_batch = std::max(most, static_cast<std::uint32_t>(options.n_batch.value));
  params.n_ubatch = std::max(most, static_cast<std::uint32_t>(options.n_ubatch.value));
  params.n_seq_max = most;
  params.n_outputs_max = most;
  params.flash_attn_type =
      options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_AUTO : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.offload_kqv = options.offload_kv;
  params.swa_full = options.swa_full;
  params.kv_unified = true;
  params.no_perf = true;
  return params;
}

// Frees what llama_batch_init() made.
class Batch {
 public:
  explicit Batch(std::int32_t rows) : batch_(llama_batch_init(rows, 0, 1)) {}
  ~Batch() { llama_batch_free(batch_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void clear() { batch_.n_tokens = 0; }
  void add(llama_token token, llama_pos position, llama_seq_id sequence, bool output) {
    const std::int32_t row = batch_.n_tokens++;
    batch_.token[row] = token;
    batch_.pos[row] = position;
    batch_.n_seq_id[row] = 1;
    batch_.seq_id[row][0] = sequence;
    batch_.logits[row] = output ? 1 : 0;
  }
  bool decode(llama_context* context) const { return llama_decode(context, batch_) == 0; }

 private:
  llama_batch batch_;
};

struct LoopSequence {
  common_sampler_ptr chain;
  llama_token next = 0;
  llama_pos position = 0;
  std::vector<TokenId> tokens = {};
};

class BareLoop {
 public:
  BareLoop(llama_context* context, std::vector<LoopSequence> sequences)
      : context_(context),
        sequences_(std::move(sequences)),
        batch_(static_cast<std::int32_t>(llama_n_batch(context))) {}

  // Chooses the first token of each too.
  bool compute_prompts(std::span<const TokenId> prompt) {
    const std::size_t most = llama_n_batch(context_);
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      LoopSequence& sequence = sequences_[s];
      std::size_t in_batch = 0;
      for (std::size_t at = 0; at < prompt.size(); at += in_batch) {
        in_batch = std::min(most, prompt.size() - at);
        batch_.clear();
        for (const TokenId token : prompt.subspan(at, in_batch)) {
          common_sampler_accept(sequence.chain.get(), raw(token), false);
          const bool last = sequence.position + 1 == static_cast<llama_pos>(prompt.size());
          batch_.add(raw(token), sequence.position++, static_cast<llama_seq_id>(s), last);
        }
        if (!batch_.decode(context_)) return false;
      }
      choose(sequence, static_cast<std::int32_t>(in_batch) - 1);
    }
    return true;
  }

  bool compute_replies(Tokens count) {
    for (Tokens i(0); i < count; i += Tokens(1)) {
      batch_.clear();
      for (std::size_t s = 0; s < sequences_.size(); ++s) {
        LoopSequence& sequence = sequences_[s];
        sequence.tokens.push_back(TokenId{sequence.next});
        batch_.add(sequence.next, sequence.position++, static_cast<llama_seq_id>(s), true);
      }
      if (!batch_.decode(context_)) return false;
      std::int32_t row = 0;
      for (LoopSequence& sequence : sequences_) choose(sequence, row++);
    }
    return true;
  }

  std::vector<TokenId> tokens() const {
    std::vector<TokenId> out;
    for (const LoopSequence& sequence : sequences_) {
      out.insert(out.end(), sequence.tokens.begin(), sequence.tokens.end());
    }
    return out;
  }

 private:
  void choose(LoopSequence& sequence, std::int32_t row) const {
    sequence.next = common_sampler_sample(sequence.chain.get(), context_, row);
    common_sampler_accept(sequence.chain.get(), sequence.next, true);
  }

  llama_context* context_;
  std::vector<LoopSequence> sequences_;
  Batch batch_;
};

Result<std::vector<LoopSequence>, std::string> make_sequences(const llama_model* model,
                                                              const SamplingParams& params,
                                                              std::int32_t sequences) {
  auto library = library_params(model, params);
  if (!library) return Err{library.error().message};
  std::vector<LoopSequence> out;
  for (std::int32_t s = 0; s < sequences; ++s) {
    out.push_back({.chain = common_sampler_ptr(common_sampler_init(model, library.value()))});
  }
  return out;
}

llama_model_params loop_model_params() {
  llama_model_params params = llama_model_default_params();
  params.load_mode = LLAMA_LOAD_MODE_NONE;
  return params;
}

}  // namespace

Result<BareLoopFigures, std::string> run_bare_loop(const std::string& path,
                                                   std::span<const TokenId> prompt, Tokens count,
                                                   const EngineOptions& options,
                                                   const SamplingParams& params,
                                                   std::int32_t sequences) {
  FERMATA_CHECK(!prompt.empty() && count >= Tokens(1), "a loop over nothing");
  FERMATA_CHECK(sequences >= 1 && sequences <= n_parallel_max, "so many sequences");
  const LibraryErrors errors;
  try {
    const llama_model_ptr model(llama_model_load_from_file(path.c_str(), loop_model_params()));
    if (!model) return Err{"cannot load '" + path + "': " + errors.reason("no reason given")};
    const Threadpools pools = Threadpools::make(options);
    const std::int64_t each = static_cast<std::int64_t>(prompt.size()) + count.value;
    const llama_context_ptr context(llama_init_from_model(
        model.get(), params_for(Tokens(each * sequences), sequences, options)));
    if (!context) return Err{"no context can be made: " + errors.reason("no reason given")};
    pools.attach(context.get());
    auto chains = make_sequences(model.get(), params, sequences);
    if (!chains) return Err{chains.error()};

    BareLoop loop(context.get(), std::move(chains).value());
    BareLoopFigures figures;
    const SteadyClock clock;
    const Micros start = clock.now();
    if (!loop.compute_prompts(prompt)) return Err{"the prompt cannot be computed"};
    const Micros middle = clock.now();
    if (!loop.compute_replies(count)) return Err{"a token cannot be computed"};
    figures.decode_time = clock.now() - middle;
    figures.tokens = loop.tokens();
    figures.prompt = Tokens(static_cast<std::int64_t>(prompt.size()));
    figures.prompt_time = middle - start;
    figures.decoded = count;
    figures.decode_tokens_per_second =
        static_cast<double>(count.value * sequences) * 1e6 /
        static_cast<double>(std::max<std::int64_t>(1, figures.decode_time.value));
    return figures;
  } catch (const std::exception& e) {
    return Err{std::string(e.what())};
  }
}

}  // namespace fermata::engine::llama
