#include "engine/llama/bare_loop.h"

#include "base/check.h"
#include "base/clock.h"
#include "engine/llama/log_sink.h"
#include "engine/llama/sampler.h"
#include "engine/llama/threadpool.h"

#include <algorithm>
#include <exception>

#include <llama-cpp.h>

namespace fermata::engine::llama {
namespace {

llama_context_params params_for(Tokens cells, const EngineOptions& options) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(cells.value);
  params.n_batch = static_cast<std::uint32_t>(std::max<std::int64_t>(1, options.n_batch.value));
  params.n_ubatch = static_cast<std::uint32_t>(std::max<std::int64_t>(1, options.n_ubatch.value));
  params.n_seq_max = 1;
  params.n_outputs_max = 1;
  params.flash_attn_type =
      options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_AUTO : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.offload_kqv = options.offload_kv;
  params.swa_full = options.swa_full;
  params.kv_unified = true;
  params.no_perf = true;
  return params;
}

class BareLoop {
 public:
  BareLoop(llama_context* context, common_sampler* chain) : context_(context), chain_(chain) {}

  bool compute_prompt(std::span<const TokenId> prompt) {
    std::vector<llama_token> tokens;
    for (const TokenId token : prompt) {
      tokens.push_back(raw(token));
      common_sampler_accept(chain_, raw(token), false);
    }
    const auto most = static_cast<std::size_t>(llama_n_batch(context_));
    for (std::size_t at = 0; at < tokens.size(); at += most) {
      const std::size_t rows = std::min(most, tokens.size() - at);
      if (!decode(tokens.data() + at, static_cast<std::int32_t>(rows))) return false;
    }
    return true;
  }

  bool compute_reply(Tokens count, std::vector<TokenId>& out) {
    out.reserve(static_cast<std::size_t>(count.value));
    for (Tokens i(0); i < count; i += Tokens(1)) {
      llama_token token = common_sampler_sample(chain_, context_, -1);
      common_sampler_accept(chain_, token, true);
      out.push_back(TokenId{token});
      if (!decode(&token, 1)) return false;
    }
    return true;
  }

 private:
  bool decode(llama_token* tokens, std::int32_t rows) {
    return llama_decode(context_, llama_batch_get_one(tokens, rows)) == 0;
  }

  llama_context* context_;
  common_sampler* chain_;
};

}  // namespace

Result<BareLoopFigures, std::string> run_bare_loop(const std::string& path,
                                                   std::span<const TokenId> prompt, Tokens count,
                                                   const EngineOptions& options,
                                                   const SamplingParams& params) {
  FERMATA_CHECK(!prompt.empty() && count >= Tokens(1), "a loop over nothing");
  const LibraryErrors errors;
  try {
    const llama_model_ptr model(
        llama_model_load_from_file(path.c_str(), llama_model_default_params()));
    if (!model) return Err{"cannot load '" + path + "': " + errors.reason("no reason given")};
    const Threadpools pools = Threadpools::make(options);
    const Tokens cells = Tokens(static_cast<std::int64_t>(prompt.size())) + count;
    const llama_context_ptr context(llama_init_from_model(model.get(), params_for(cells, options)));
    if (!context) return Err{"no context can be made: " + errors.reason("no reason given")};
    pools.attach(context.get());
    auto library = library_params(model.get(), params);
    if (!library) return Err{library.error().message};
    const common_sampler_ptr chain(common_sampler_init(model.get(), library.value()));

    BareLoop loop(context.get(), chain.get());
    BareLoopFigures figures;
    const SteadyClock clock;
    const Micros start = clock.now();
    if (!loop.compute_prompt(prompt)) return Err{"the prompt cannot be computed"};
    const Micros middle = clock.now();
    if (!loop.compute_reply(count, figures.tokens)) return Err{"a token cannot be computed"};
    figures.prompt = Tokens(static_cast<std::int64_t>(prompt.size()));
    figures.prompt_time = middle - start;
    figures.decoded = count;
    figures.decode_time = clock.now() - middle;
    figures.decode_tokens_per_second =
        static_cast<double>(count.value) * 1e6 /
        static_cast<double>(std::max<std::int64_t>(1, figures.decode_time.value));
    return figures;
  } catch (const std::exception& e) {
    return Err{std::string(e.what())};
  }
}

}  // namespace fermata::engine::llama
