#include "settings/settings.h"

#include "settings/table.h"
#include "settings/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <spdlog/fmt/fmt.h>

namespace fermata::settings {
namespace {

std::optional<std::string> value_fault(const Settings& settings) {
  for (const Row* row : table()) {
    if (!row->alias_of.empty() || is_allowed(*row, settings)) continue;
    const std::string value = row->secret ? "(hidden)" : value_text(*row, settings);
    return fmt::format("{} cannot be \"{}\": give {}", title(*row), value, allowed_text(*row));
  }
  return std::nullopt;
}

bool is_quantised(std::string_view kv_type) {
  return kv_type != "f32" && kv_type != "f16" && kv_type != "bf16";
}

std::optional<std::string> context_fault(const ContextSettings& context) {
  if (is_quantised(context.cache_type_v) && context.flash_attention == "off") {
    return fmt::format(
        "--cache-type-v {} needs flash attention: give --flash-attn auto, or --cache-type-v f16",
        context.cache_type_v);
  }
  if (context.deterministic && context.kv_unified) {
    return "--deterministic gives every slot its own cells: leave --kv-unified out, or "
           "--deterministic";
  }
  const std::int64_t n_parallel = context.n_parallel < 0 ? n_parallel_auto : context.n_parallel;
  if (context.n_ctx > Tokens(0) && context.n_ctx < Tokens(n_parallel)) {
    return fmt::format(
        "--ctx-size {} is less than one cell for each of {} slots: raise it, or lower --parallel",
        context.n_ctx.value, n_parallel);
  }
  return std::nullopt;
}

std::optional<std::string> shift_fault(const Settings& settings) {
  if (!settings.context.context_shift) return std::nullopt;
  if (settings.context.deterministic) {
    return "--context-shift leaves cells that cannot be computed again, as --deterministic needs: "
           "leave one of them out";
  }
  if (settings.preempt.policy == "admission-only") {
    return "--context-shift may take cells that --preempt-policy admission-only has promised: "
           "leave one of them out";
  }
  return std::nullopt;
}

std::optional<std::string> sampling_fault(const SamplingSettings& sampling) {
  for (const std::string& text : sampling.logit_bias) {
    if (!logit_bias_of(text)) {
      return fmt::format("--logit-bias cannot be \"{}\": give a token id, a sign and a number",
                         text.substr(0, 40));
    }
  }
  const auto texts = {&sampling.grammar, &sampling.grammar_file, &sampling.json_schema,
                      &sampling.json_schema_file};
  if (std::ranges::count_if(texts, [](const std::string* text) { return !text->empty(); }) > 1) {
    return "--grammar, --grammar-file, --json-schema and --json-schema-file exclude each other: "
           "give one";
  }
  return std::nullopt;
}

std::optional<std::string> prefix_fault(const std::string& prefix) {
  if (prefix.empty() || (prefix.front() == '/' && prefix.back() != '/')) return std::nullopt;
  return "--api-prefix must begin with a slash and end without one, like /llm";
}

}  // namespace

std::optional<LogitBias> logit_bias_of(std::string_view text) {
  LogitBias out;
  const char* const end = text.data() + text.size();
  const auto token = std::from_chars(text.data(), end, out.token);
  if (token.ec != std::errc{} || out.token < 0 || token.ptr == end) return std::nullopt;
  const char sign = *token.ptr;
  if (sign != '+' && sign != '-') return std::nullopt;
  const auto bias = std::from_chars(token.ptr + 1, end, out.bias);
  if (bias.ec != std::errc{} || bias.ptr != end || std::signbit(out.bias)) return std::nullopt;
  if (std::isnan(out.bias) || (std::isinf(out.bias) && sign == '+')) return std::nullopt;
  if (sign == '-') out.bias = -out.bias;
  return out;
}

std::optional<std::string> find_fault(const Settings& settings) {
  if (auto fault = value_fault(settings)) return fault;
  if (settings.batch.n_ubatch > settings.batch.n_batch) {
    return fmt::format("--ubatch-size {} is larger than --batch-size {}: lower it, or raise that",
                       settings.batch.n_ubatch.value, settings.batch.n_batch.value);
  }
  if (auto fault = context_fault(settings.context)) return fault;
  if (auto fault = shift_fault(settings)) return fault;
  if (auto fault = sampling_fault(settings.sampling)) return fault;
  if (!settings.chat.template_text.empty() && !settings.chat.template_file.empty()) {
    return "--chat-template and --chat-template-file exclude each other: give one";
  }
  const bool no_cache = settings.server.cache_ram_mib == 0 || !settings.server.cache_prompt;
  if (!settings.pages.folder.empty() && no_cache) {
    return "--page-dir brings conversations back by way of --cache-ram: set that above 0, and do "
           "not give --no-cache-prompt";
  }
  const PreemptSettings& preempt = settings.preempt;
  if (preempt.exactness == "strict" && preempt.ram_mib == 0 && settings.pages.folder.empty()) {
    return "--exactness strict keeps the bytes of who is parked: raise --preempt-ram above 0, or "
           "give a --page-dir";
  }
  return prefix_fault(settings.server.api_prefix);
}

}  // namespace fermata::settings
