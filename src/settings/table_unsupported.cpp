// Rows of what llama-server has, or what is planned, and this server does not have yet; and of what
// it does always, so that nothing is left to choose.
#include "settings/table.h"

namespace fermata::settings {
namespace {

constexpr Row value(Group group, Names names, std::string_view placeholder, std::string_view env,
                    std::string_view only = {}) {
  return {.names = names,
          .env = env,
          .placeholder = placeholder,
          .group = group,
          .support = Support::not_yet,
          .only = only};
}

constexpr Row twin(Group group, Names names, Names off_names, std::string_view env,
                   std::string_view only) {
  return {.names = names,
          .off_names = off_names,
          .env = env,
          .group = group,
          .support = Support::not_yet,
          .only = only};
}

constexpr Row flag(Group group, Names names, std::string_view env) {
  return twin(group, names, {}, env, "");
}

constexpr Row variable(Group group, std::string_view env) { return twin(group, {}, {}, env, ""); }

constexpr Row always(Group group, Names names, Names off_names, std::string_view env,
                     std::string_view help) {
  return {.names = names,
          .off_names = off_names,
          .env = env,
          .help = help,
          .group = group,
          .support = Support::fixed,
          .only = "true"};
}

constexpr Row no_effect(Group group, Names names, std::string_view placeholder,
                        std::string_view env) {
  return {.names = names,
          .env = env,
          .placeholder = placeholder,
          .group = group,
          .support = Support::no_effect};
}

constexpr Row removed(Names names, std::string_view env, std::string_view help) {
  return {.names = names,
          .env = env,
          .placeholder = "N",
          .help = help,
          .group = Group::speculation,
          .support = Support::removed};
}

constexpr Row rows[] = {
    flag(Group::general, {"-cl", "--cache-list"}, ""),
    flag(Group::general, {"--completion-bash"}, ""),
    flag(Group::general, {"--list-devices"}, ""),

    value(Group::threads, {"-C", "--cpu-mask"}, "M", ""),
    value(Group::threads, {"-Cr", "--cpu-range"}, "lo-hi", ""),
    value(Group::threads, {"--cpu-strict"}, "<0|1>", ""),
    value(Group::threads, {"-Cb", "--cpu-mask-batch"}, "M", ""),
    value(Group::threads, {"-Crb", "--cpu-range-batch"}, "lo-hi", ""),
    value(Group::threads, {"--cpu-strict-batch"}, "<0|1>", ""),
    value(Group::threads, {"--prio-batch"}, "N", ""),
    value(Group::threads, {"--poll-batch"}, "<0|1>", ""),
    value(Group::threads, {"--numa"}, "TYPE", "LLAMA_ARG_NUMA"),

    value(Group::context, {"--kv-unified-per-slot"}, "N", "LLAMA_ARG_KV_UNIFIED_PER_SLOT"),
    value(Group::context, {"-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"}, "N",
          "LLAMA_ARG_CTX_CHECKPOINTS", "0"),
    value(Group::context, {"-cms", "--checkpoint-min-step"}, "N",
          "LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT"),
    no_effect(Group::context, {"-dt", "--defrag-thold"}, "N", "LLAMA_ARG_DEFRAG_THOLD"),
    value(Group::context, {"--cache-reuse"}, "N", "LLAMA_ARG_CACHE_REUSE", "0"),

    always(Group::batch, {"-cb", "--cont-batching"}, {"-nocb", "--no-cont-batching"},
           "LLAMA_ARG_CONT_BATCHING", "admit and finish requests while others run"),

    value(Group::logging, {"--log-prompts-dir"}, "PATH", ""),

    flag(Group::sampling, {"-bs", "--backend-sampling"}, "LLAMA_ARG_BACKEND_SAMPLING"),

    twin(Group::chat, {"--reasoning-preserve"}, {"--no-reasoning-preserve"},
         "LLAMA_ARG_REASONING_PRESERVE", ""),

    value(Group::server, {"--tags"}, "STRING", "LLAMA_ARG_TAGS"),
    value(Group::server, {"-sps", "--slot-prompt-similarity"}, "SIMILARITY", ""),
    variable(Group::server, "AIP_MODE"),

    value(Group::sources, {"-mu", "--model-url"}, "MODEL_URL", "LLAMA_ARG_MODEL_URL"),
    value(Group::sources, {"-dr", "--docker-repo"}, "[<repo>/]<model>[:quant]",
          "LLAMA_ARG_DOCKER_REPO"),
    value(Group::sources, {"-hf", "-hfr", "--hf-repo"}, "<user>/<model>[:quant]",
          "LLAMA_ARG_HF_REPO"),
    value(Group::sources, {"-hff", "--hf-file"}, "FILE", "LLAMA_ARG_HF_FILE"),
    value(Group::sources, {"-hft", "--hf-token"}, "TOKEN", ""),
    always(Group::sources, {"--offline"}, {}, "LLAMA_ARG_OFFLINE", "never download anything"),
    flag(Group::sources, {"--embd-gemma-default"}, ""),
    flag(Group::sources, {"--fim-qwen-1.5b-default"}, ""),
    flag(Group::sources, {"--fim-qwen-3b-default"}, ""),
    flag(Group::sources, {"--fim-qwen-7b-default"}, ""),
    flag(Group::sources, {"--fim-qwen-7b-spec"}, ""),
    flag(Group::sources, {"--fim-qwen-14b-spec"}, ""),
    flag(Group::sources, {"--fim-qwen-30b-default"}, ""),
    flag(Group::sources, {"--gpt-oss-20b-default"}, ""),
    flag(Group::sources, {"--gpt-oss-120b-default"}, ""),
    flag(Group::sources, {"--vision-gemma-4b-default"}, ""),
    flag(Group::sources, {"--vision-gemma-12b-default"}, ""),

    twin(Group::devices, {"--repack"}, {"-nr", "--no-repack"}, "LLAMA_ARG_REPACK", "true"),
    flag(Group::devices, {"--no-host"}, "LLAMA_ARG_NO_HOST"),
    value(Group::devices, {"--rpc"}, "SERVERS", "LLAMA_ARG_RPC"),
    value(Group::devices, {"-lzm", "--lazy-mode"}, "MODE", "LLAMA_ARG_LAZY_MODE"),
    value(Group::devices, {"-dev", "--device"}, "<dev1,dev2,..>", "LLAMA_ARG_DEVICE"),
    value(Group::devices, {"-ot", "--override-tensor"}, "<tensor name pattern>=<buffer type>,...",
          "LLAMA_ARG_OVERRIDE_TENSOR"),
    flag(Group::devices, {"-cmoe", "--cpu-moe"}, "LLAMA_ARG_CPU_MOE"),
    value(Group::devices, {"-ncmoe", "--n-cpu-moe"}, "N", "LLAMA_ARG_N_CPU_MOE", "0"),
    value(Group::devices, {"-ncffn", "--n-cpu-ffn"}, "N", "LLAMA_ARG_N_CPU_FFN", "0"),
    value(Group::devices, {"-sm", "--split-mode"}, "{none,layer,row,tensor}",
          "LLAMA_ARG_SPLIT_MODE", "layer"),
    value(Group::devices, {"-ts", "--tensor-split"}, "N0,N1,N2,...", "LLAMA_ARG_TENSOR_SPLIT"),
    value(Group::devices, {"-mg", "--main-gpu"}, "INDEX", "LLAMA_ARG_MAIN_GPU", "0"),
    value(Group::devices, {"-fit", "--fit"}, "[on|off]", "LLAMA_ARG_FIT", "off"),
    value(Group::devices, {"-fitt", "--fit-target"}, "MiB0,MiB1,MiB2,...", "LLAMA_ARG_FIT_TARGET"),
    value(Group::devices, {"-fitc", "--fit-ctx"}, "N", "LLAMA_ARG_FIT_CTX"),
    flag(Group::devices, {"--check-tensors"}, ""),
    value(Group::devices, {"--override-kv"}, "KEY=TYPE:VALUE,...", ""),
    twin(Group::devices, {"--op-offload"}, {"--no-op-offload"}, "", "true"),
    value(Group::devices, {"--moe-cache-mib"}, "N", ""),

    value(Group::rope, {"--rope-scaling"}, "{none,linear,yarn}", "LLAMA_ARG_ROPE_SCALING_TYPE"),
    value(Group::rope, {"--rope-scale"}, "N", "LLAMA_ARG_ROPE_SCALE"),
    value(Group::rope, {"--rope-freq-base"}, "N", "LLAMA_ARG_ROPE_FREQ_BASE"),
    value(Group::rope, {"--rope-freq-scale"}, "N", "LLAMA_ARG_ROPE_FREQ_SCALE"),
    value(Group::rope, {"--yarn-orig-ctx"}, "N", "LLAMA_ARG_YARN_ORIG_CTX"),
    value(Group::rope, {"--yarn-ext-factor"}, "N", "LLAMA_ARG_YARN_EXT_FACTOR"),
    value(Group::rope, {"--yarn-attn-factor"}, "N", "LLAMA_ARG_YARN_ATTN_FACTOR"),
    value(Group::rope, {"--yarn-beta-slow"}, "N", "LLAMA_ARG_YARN_BETA_SLOW"),
    value(Group::rope, {"--yarn-beta-fast"}, "N", "LLAMA_ARG_YARN_BETA_FAST"),

    value(Group::adapters, {"--lora"}, "FNAME", ""),
    value(Group::adapters, {"--lora-scaled"}, "FNAME:SCALE,...", ""),
    value(Group::adapters, {"--control-vector"}, "FNAME", ""),
    value(Group::adapters, {"--control-vector-scaled"}, "FNAME:SCALE,...", ""),
    value(Group::adapters, {"--control-vector-layer-range"}, "START END", ""),
    flag(Group::adapters, {"--lora-init-without-apply"}, ""),

    value(Group::media, {"-mm", "--mmproj"}, "FILE", "LLAMA_ARG_MMPROJ"),
    value(Group::media, {"-mmu", "--mmproj-url"}, "URL", "LLAMA_ARG_MMPROJ_URL"),
    twin(Group::media, {"--mmproj-auto"}, {"--no-mmproj", "--no-mmproj-auto"},
         "LLAMA_ARG_MMPROJ_AUTO", "false"),
    twin(Group::media, {"--mmproj-offload"}, {"--no-mmproj-offload"}, "LLAMA_ARG_MMPROJ_OFFLOAD",
         "false"),
    value(Group::media, {"--image-min-tokens"}, "N", "LLAMA_ARG_IMAGE_MIN_TOKENS"),
    value(Group::media, {"--image-max-tokens"}, "N", "LLAMA_ARG_IMAGE_MAX_TOKENS"),
    value(Group::media, {"--mtmd-batch-max-tokens"}, "N", "LLAMA_ARG_MTMD_BATCH_MAX_TOKENS"),
    value(Group::media, {"--video-fps"}, "N", "LLAMA_ARG_VIDEO_FPS"),
    value(Group::media, {"--video-timestamp-interval"}, "N", "LLAMA_ARG_VIDEO_TIMESTAMP_INTERVAL"),
    value(Group::media, {"--video-ffmpeg-dir"}, "DIR", "LLAMA_ARG_VIDEO_FFMPEG_DIR"),
    value(Group::media, {"--media-path"}, "PATH", ""),
    value(Group::media, {"-mmdev", "--mmproj-device"}, "DEVICE", "MTMD_BACKEND_DEVICE"),

    flag(Group::embedding, {"--rerank", "--reranking"}, "LLAMA_ARG_RERANKING"),

    value(Group::interface, {"--path"}, "PATH", "LLAMA_ARG_STATIC_PATH"),
    value(Group::interface, {"--ui-config", "--webui-config"}, "JSON", "LLAMA_ARG_UI_CONFIG"),
    value(Group::interface, {"--ui-config-file", "--webui-config-file"}, "PATH",
          "LLAMA_ARG_UI_CONFIG_FILE"),
    twin(Group::interface, {"--ui-mcp-proxy", "--webui-mcp-proxy"},
         {"--no-ui-mcp-proxy", "--no-webui-mcp-proxy"}, "LLAMA_ARG_UI_MCP_PROXY", "false"),
    value(Group::interface, {"--tools"}, "TOOL1,TOOL2,...", "LLAMA_ARG_TOOLS"),
    value(Group::interface, {"--tools-runtime"}, "OPTION", "LLAMA_ARG_TOOLS_RUNTIME"),
    value(Group::interface, {"--mcp-servers-config"}, "PATH", "LLAMA_ARG_MCP_SERVERS_CONFIG"),
    value(Group::interface, {"--mcp-servers-json"}, "JSON", "LLAMA_ARG_MCP_SERVERS_JSON"),
    twin(Group::interface, {"-ag", "--agent"}, {"-no-ag", "--no-agent"}, "LLAMA_ARG_AGENT",
         "false"),
    twin(Group::interface, {"--ui", "--webui"}, {"--no-ui", "--no-webui"}, "LLAMA_ARG_UI", "false"),

    value(Group::router, {"--models-dir"}, "PATH", "LLAMA_ARG_MODELS_DIR"),
    value(Group::router, {"--models-preset"}, "PATH", "LLAMA_ARG_MODELS_PRESET"),
    value(Group::router, {"--models-max"}, "N", "LLAMA_ARG_MODELS_MAX"),
    twin(Group::router, {"--models-autoload"}, {"--no-models-autoload"},
         "LLAMA_ARG_MODELS_AUTOLOAD", "false"),

    value(Group::speculation, {"-lcs", "--lookup-cache-static"}, "FNAME", ""),
    value(Group::speculation, {"-lcd", "--lookup-cache-dynamic"}, "FNAME", ""),
    value(Group::speculation, {"--spec-draft-hf", "-hfd", "-hfrd", "--hf-repo-draft"},
          "<user>/<model>[:quant]", "LLAMA_ARG_SPEC_DRAFT_HF_REPO"),
    value(Group::speculation, {"--spec-draft-threads", "-td", "--threads-draft"}, "N", ""),
    value(Group::speculation, {"--spec-draft-threads-batch", "-tbd", "--threads-batch-draft"}, "N",
          ""),
    value(Group::speculation, {"--spec-draft-cpu-mask", "-Cd", "--cpu-mask-draft"}, "M", ""),
    value(Group::speculation, {"--spec-draft-cpu-range", "-Crd", "--cpu-range-draft"}, "lo-hi", ""),
    value(Group::speculation, {"--spec-draft-cpu-strict", "--cpu-strict-draft"}, "<0|1>", ""),
    value(Group::speculation, {"--spec-draft-prio", "--prio-draft"}, "N", ""),
    value(Group::speculation, {"--spec-draft-poll", "--poll-draft"}, "<0|1>", ""),
    value(Group::speculation, {"--spec-draft-cpu-mask-batch", "-Cbd", "--cpu-mask-batch-draft"},
          "M", ""),
    value(Group::speculation, {"--spec-draft-cpu-strict-batch", "--cpu-strict-batch-draft"},
          "<0|1>", ""),
    value(Group::speculation, {"--spec-draft-prio-batch", "--prio-batch-draft"}, "N", ""),
    value(Group::speculation, {"--spec-draft-poll-batch", "--poll-batch-draft"}, "<0|1>", ""),
    value(Group::speculation, {"--spec-draft-type-k", "-ctkd", "--cache-type-k-draft"}, "TYPE",
          "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K"),
    value(Group::speculation, {"--spec-draft-type-v", "-ctvd", "--cache-type-v-draft"}, "TYPE",
          "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V"),
    value(Group::speculation, {"--spec-draft-override-tensor", "-otd", "--override-tensor-draft"},
          "<tensor name pattern>=<buffer type>,...", ""),
    flag(Group::speculation, {"--spec-draft-cpu-moe", "-cmoed", "--cpu-moe-draft"},
         "LLAMA_ARG_SPEC_DRAFT_CPU_MOE"),
    value(Group::speculation,
          {"--spec-draft-n-cpu-moe", "--spec-draft-ncmoe", "-ncmoed", "--n-cpu-moe-draft"}, "N",
          "LLAMA_ARG_SPEC_DRAFT_N_CPU_MOE"),
    value(Group::speculation, {"--spec-draft-n-max"}, "N", "LLAMA_ARG_SPEC_DRAFT_N_MAX"),
    value(Group::speculation, {"--spec-draft-n-min"}, "N", "LLAMA_ARG_SPEC_DRAFT_N_MIN"),
    value(Group::speculation, {"--spec-synth-len"}, "L", "LLAMA_ARG_SPEC_SYNTH_LEN"),
    value(Group::speculation, {"--spec-synth-rates"}, "P0,P1,...", "LLAMA_ARG_SPEC_SYNTH_RATES"),
    value(Group::speculation, {"--spec-draft-p-split", "--draft-p-split"}, "P",
          "LLAMA_ARG_SPEC_DRAFT_P_SPLIT"),
    value(Group::speculation, {"--spec-draft-p-min", "--draft-p-min"}, "P",
          "LLAMA_ARG_SPEC_DRAFT_P_MIN"),
    twin(Group::speculation, {"--spec-draft-backend-sampling"},
         {"--no-spec-draft-backend-sampling"}, "LLAMA_ARG_SPEC_DRAFT_BACKEND_SAMPLING", "false"),
    value(Group::speculation, {"--spec-draft-device", "-devd", "--device-draft"}, "<dev1,dev2,..>",
          ""),
    value(Group::speculation,
          {"--spec-draft-ngl", "-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft"}, "N",
          "LLAMA_ARG_N_GPU_LAYERS_DRAFT"),
    value(Group::speculation, {"--spec-draft-model", "-md", "--model-draft"}, "FNAME",
          "LLAMA_ARG_SPEC_DRAFT_MODEL"),
    value(Group::speculation, {"--spec-type"}, "TYPES", "LLAMA_ARG_SPEC_TYPE", "none"),
    value(Group::speculation, {"--spec-ngram-mod-n-min"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-mod-n-max"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-mod-n-match"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-simple-size-n"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-simple-size-m"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-simple-min-hits"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-map-k-size-n"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-map-k-size-m"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-map-k-min-hits"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-map-k4v-size-n"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-map-k4v-size-m"}, "N", ""),
    value(Group::speculation, {"--spec-ngram-map-k4v-min-hits"}, "N", ""),
    removed({"--draft", "--draft-n", "--draft-max"}, "LLAMA_ARG_DRAFT_MAX",
            "use --spec-draft-n-max or --spec-ngram-mod-n-max"),
    removed({"--draft-min", "--draft-n-min"}, "LLAMA_ARG_DRAFT_MIN",
            "use --spec-draft-n-min or --spec-ngram-mod-n-min"),
    removed({"--spec-ngram-size-n"}, "", "use --spec-ngram-*-size-n or --spec-ngram-mod-n-match"),
    removed({"--spec-ngram-size-m"}, "", "use --spec-ngram-*-size-m"),
    removed({"--spec-ngram-min-hits"}, "", "use --spec-ngram-*-min-hits"),
    flag(Group::speculation, {"--spec-default"}, ""),
};

}  // namespace

std::span<const Row> unsupported_rows() { return rows; }

}  // namespace fermata::settings
