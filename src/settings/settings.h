// Every setting of the server as plain typed values. A default-constructed Settings holds the
// defaults: the table (table.h), the help and the documentation read them from here. Built by
// parse_settings(), which hands out valid ones only; code that changes one asks find_fault() again.
#pragma once

#include "base/types.h"
#include "settings/server_settings.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::settings {

struct ModelSettings {
  std::string path;  // Empty: none was named; only the caller knows if it needs one.
  std::vector<std::string> aliases;  // Names for the API; empty: the file's.
  std::string backend_dir;           // Empty: beside libllama.
  std::int64_t gpu_layers = -1;      // -1: the library decides, -2: all.
  std::string load_mode = "auto";    // auto, none, mmap, mlock, mmap+mlock, dio.
};

struct ContextSettings {
  Tokens n_ctx{0};                   // 0: the model's trained length.
  std::int64_t n_parallel = -1;      // -1: n_parallel_auto.
  std::string cache_type_k = "f16";  // A KV type by name; so is cache_type_v.
  std::string cache_type_v = "f16";
  bool kv_unified = true;                // false: the split layout.
  bool deterministic = false;            // Needs the split layout.
  std::string flash_attention = "auto";  // on, off, auto.
  bool swa_full = false;
  bool offload_kv = true;
  bool context_shift = false;  // Not with `deterministic`, nor where nobody is parked.
};
inline constexpr std::int64_t n_parallel_auto = 4;

struct BatchSettings {
  Tokens n_batch{2048};
  Tokens n_ubatch{512};             // Never above n_batch.
  Tokens n_predict{-1};             // -1: until the window is full.
  Tokens n_keep{0};                 // Of a prompt, at context shifts; -1: all.
  std::int64_t step_budget_ms = 0;  // 0: a share of each step, measured.
  bool spm_infill = false;          // The suffix before the prefix.
  bool perf = false;                // The library measures itself.
};

// What happens when cells run out.
struct PreemptSettings {
  bool enabled = true;
  std::int64_t ram_mib = 8192;            // For the bytes of parked sequences. -1: no limit.
  std::string exactness = "declared";     // declared, strict.
  std::string policy = "smallest";        // smallest, youngest, oldest, largest, admission-only.
  std::int64_t every = 0;                 // Test: park each sequence after so many tokens.
  bool last_resort_only = false;          // Test: no parks for cells before a step found none.
  std::int64_t move_fault_percent = 0;    // Test: of copies of cells.
  std::int64_t no_room_percent = 0;       // Test: of steps.
  std::int64_t build_fault_percent = 0;   // Test: of builds of a context.
  std::string reconfigure_path = "auto";  // auto, beside, in_place.
};

struct ThreadSettings {
  std::int64_t decode = -1;  // Below 1: one per core.
  std::int64_t batch = -1;   // Below 1: as `decode`.
  std::int64_t poll = 50;    // 0: sleep between graphs, 100: spin.
  std::int64_t priority = 0;
  std::int64_t http = -1;  // Below 1: chosen from cores and n_parallel.
};

// What a request gets that does not say otherwise.
struct SamplingSettings {
  std::vector<std::string> samplers = {"penalties", "dry",   "top_n_sigma", "top_k",      "typ_p",
                                       "top_p",     "min_p", "xtc",         "temperature"};
  std::int64_t seed = -1;               // -1: drawn anew for each request.
  std::vector<std::string> logit_bias;  // See logit_bias_of().
  // At most one of these. Files are read by the caller, who leaves the text of a grammar in their
  // place.
  std::string grammar, grammar_file, json_schema, json_schema_file;
  std::vector<std::string> reverse_prompts;  // Stop words.
  bool special = false;                      // Control tokens are part of the text.
  bool escape = true;                        // Of reverse_prompts and dry_sequence_breakers.
  bool ignore_eos = false;
  float temperature = 0.8F;
  std::int64_t top_k = 40;
  float top_p = 0.95F;
  float min_p = 0.05F;
  float top_n_sigma = -1.0F;
  float xtc_probability = 0.0F;
  float xtc_threshold = 0.1F;
  float typical_p = 1.0F;
  std::int64_t repeat_last_n = 64;
  float repeat_penalty = 1.0F;
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  float dry_multiplier = 0.0F;
  float dry_base = 1.75F;
  std::int64_t dry_allowed_length = 2;
  std::int64_t dry_penalty_last_n = 64;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  float adaptive_target = -1.0F;
  float adaptive_decay = 0.9F;
  float dynatemp_range = 0.0F;
  float dynatemp_exponent = 1.0F;
  std::int64_t mirostat = 0;
  float mirostat_eta = 0.1F;
  float mirostat_tau = 5.0F;
};

// "15043+1", "15043-0.5", "15043-inf": a token, and what is added to its logit; -inf forbids it.
struct LogitBias {
  std::int32_t token = 0;
  float bias = 0.0F;
  friend bool operator==(const LogitBias&, const LogitBias&) = default;
};
std::optional<LogitBias> logit_bias_of(std::string_view text);

struct ChatSettings {
  std::string template_text;              // Jinja text or the name of a built-in one.
  std::string template_file;              // Read by the caller; never set together with the text.
  std::string reasoning_format = "auto";  // auto, none, deepseek, deepseek-legacy.
  std::string template_kwargs;            // A JSON object; empty: none. Checked by api.
  std::string reasoning = "auto";         // on, off, auto: as the template has it.
  std::string reasoning_effort = "default";  // "none": off; "default": the template's own.
  std::int64_t reasoning_budget = -1;        // Tokens of thoughts; -1: no limit.
  std::string reasoning_budget_message;      // What ends thoughts that reached it.
  bool skip_parsing = false;                 // Replies are content, whatever they hold.
  bool prefill_assistant = true;             // A last message of the assistant is gone on with.
};

// About this start of the program, not about the server.
struct Invocation {
  bool help = false;                  // Print help_text() and leave; nothing else was read.
  bool version = false;               // Likewise.
  std::vector<std::string> warnings;  // One line each, in the order they were noticed.
};

struct Settings {
  ModelSettings model;
  ContextSettings context;
  BatchSettings batch;
  PreemptSettings preempt;
  ThreadSettings threads;
  SamplingSettings sampling;
  ChatSettings chat;
  EmbeddingSettings embedding;
  ServerSettings server;
  PageSettings pages;
  SecuritySettings security;
  LimitSettings limits;
  LogSettings log;
  Invocation invocation;
};

// Empty when every value is in its range and all fit together; else one line: what, why, the mend.
std::optional<std::string> find_fault(const Settings& settings);

}  // namespace fermata::settings
