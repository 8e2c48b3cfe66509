// Rows about sampling: what a request gets that does not say otherwise.
#include "settings/table.h"

namespace fermata::settings {
namespace {

constexpr std::array<std::string_view, 11> samplers = {
    "penalties", "dry", "top_n_sigma", "top_k",  "typ_p",     "top_p",
    "min_p",     "xtc", "temperature", "infill", "adaptive_p"};
constexpr std::array<Synonym, 16> sampler_synonyms = {{{"top-k", "top_k"},
                                                       {"topk", "top_k"},
                                                       {"top-p", "top_p"},
                                                       {"topp", "top_p"},
                                                       {"nucleus", "top_p"},
                                                       {"top-n-sigma", "top_n_sigma"},
                                                       {"topnsigma", "top_n_sigma"},
                                                       {"typ-p", "typ_p"},
                                                       {"typp", "typ_p"},
                                                       {"typ", "typ_p"},
                                                       {"typical_p", "typ_p"},
                                                       {"min-p", "min_p"},
                                                       {"minp", "min_p"},
                                                       {"temp", "temperature"},
                                                       {"adaptive-p", "adaptive_p"},
                                                       {"adaptivep", "adaptive_p"}}};
constexpr std::array<Synonym, 11> sampler_letters = {{{"e", "penalties"},
                                                      {"d", "dry"},
                                                      {"s", "top_n_sigma"},
                                                      {"k", "top_k"},
                                                      {"y", "typ_p"},
                                                      {"p", "top_p"},
                                                      {"m", "min_p"},
                                                      {"x", "xtc"},
                                                      {"t", "temperature"},
                                                      {"i", "infill"},
                                                      {"a", "adaptive_p"}}};

constexpr Row number(Names names, std::string_view help, std::string_view note, Range range,
                     Target target) {
  return {.names = names,
          .placeholder = "N",
          .help = help,
          .note = note,
          .group = Group::sampling,
          .change = Change::live,
          .range = range,
          .target = target};
}

// A row of `number` with a variable of its own, which few sampling settings have.
constexpr Row with_env(Row row, std::string_view env) {
  row.env = env;
  return row;
}

constexpr Range probability = {0, 1};
constexpr Range not_negative = {0, number_max};
constexpr Range any_number = {-number_max, number_max};

constexpr Row rows[] = {
    {.names = {"--samplers"},
     .placeholder = "SAMPLERS",
     .help = "samplers in the order of their use, separated by ';'\n{default}",
     .group = Group::sampling,
     .change = Change::live,
     .choices = samplers,
     .synonyms = sampler_synonyms,
     .separator = ';',
     .target = bind<&Settings::sampling, &SamplingSettings::samplers>()},
    {.names = {"-s", "--seed"},
     .placeholder = "SEED",
     .help = "seed of the random numbers",
     .note = "-1 = a new one for each request",
     .group = Group::sampling,
     .change = Change::live,
     .range = {-1, 4294967295},
     .target = bind<&Settings::sampling, &SamplingSettings::seed>()},
    {.names = {"--sampler-seq", "--sampling-seq"},
     .placeholder = "SEQUENCE",
     .help = "--samplers in short, one letter each",
     .group = Group::sampling,
     .change = Change::live,
     .choices = samplers,
     .synonyms = sampler_letters,
     .alias_of = "--samplers",
     .target = bind<&Settings::sampling, &SamplingSettings::samplers>()},
    {.names = {"--ignore-eos"},
     .help = "go on generating after an end-of-stream token",
     .group = Group::sampling,
     .change = Change::live,
     .target = bind<&Settings::sampling, &SamplingSettings::ignore_eos>()},
    number({"--temp", "--temperature"}, "temperature", "0 = the likeliest token", not_negative,
           bind<&Settings::sampling, &SamplingSettings::temperature>()),
    with_env(number({"--top-k"}, "choose among the k likeliest tokens", "0 = disabled",
                    {-1, whole_max}, bind<&Settings::sampling, &SamplingSettings::top_k>()),
             "LLAMA_ARG_TOP_K"),
    number({"--top-p"}, "choose among the likeliest tokens that make up p", "1.0 = disabled",
           probability, bind<&Settings::sampling, &SamplingSettings::top_p>()),
    number({"--min-p"}, "drop tokens below p times the likeliest one", "0.0 = disabled",
           probability, bind<&Settings::sampling, &SamplingSettings::min_p>()),
    number({"--top-nsigma", "--top-n-sigma"},
           "drop tokens more than n standard deviations below the likeliest", "-1.0 = disabled",
           {-1, number_max}, bind<&Settings::sampling, &SamplingSettings::top_n_sigma>()),
    number({"--xtc-probability"}, "how often XTC removes the likeliest tokens", "0.0 = disabled",
           probability, bind<&Settings::sampling, &SamplingSettings::xtc_probability>()),
    number({"--xtc-threshold"}, "probability from which XTC removes a token",
           "above 0.5 = disabled", probability,
           bind<&Settings::sampling, &SamplingSettings::xtc_threshold>()),
    number({"--typical", "--typical-p"}, "locally typical sampling, parameter p", "1.0 = disabled",
           probability, bind<&Settings::sampling, &SamplingSettings::typical_p>()),
    number({"--repeat-last-n"}, "tokens that the repetition penalties look back", "0 = disabled",
           {0, whole_max}, bind<&Settings::sampling, &SamplingSettings::repeat_last_n>()),
    number({"--repeat-penalty"}, "factor against repeated tokens", "1.0 = disabled",
           {0, number_max, true}, bind<&Settings::sampling, &SamplingSettings::repeat_penalty>()),
    number({"--presence-penalty"}, "penalty for tokens that have occurred", "0.0 = disabled",
           any_number, bind<&Settings::sampling, &SamplingSettings::presence_penalty>()),
    number({"--frequency-penalty"}, "penalty for each time a token has occurred", "0.0 = disabled",
           any_number, bind<&Settings::sampling, &SamplingSettings::frequency_penalty>()),
    number({"--dry-multiplier"}, "strength of the DRY penalty against repeated passages",
           "0.0 = disabled", not_negative,
           bind<&Settings::sampling, &SamplingSettings::dry_multiplier>()),
    number({"--dry-base"}, "growth of the DRY penalty with each repeated token", "",
           {1, number_max}, bind<&Settings::sampling, &SamplingSettings::dry_base>()),
    number({"--dry-allowed-length"}, "repeated tokens that DRY lets pass", "", {0, whole_max},
           bind<&Settings::sampling, &SamplingSettings::dry_allowed_length>()),
    number({"--dry-penalty-last-n"}, "tokens that DRY looks back", "0 = disabled", {0, whole_max},
           bind<&Settings::sampling, &SamplingSettings::dry_penalty_last_n>()),
    {.names = {"--dry-sequence-breaker"},
     .placeholder = "STRING",
     .help = "text that DRY does not look across; the first use drops the default ones, each "
             "further use adds one, and 'none' leaves no breaker",
     .group = Group::sampling,
     .change = Change::live,
     .accumulates = true,
     .target = bind<&Settings::sampling, &SamplingSettings::dry_sequence_breakers>()},
    number({"--adaptive-target"}, "adaptive-p: choose tokens near this probability",
           "negative = disabled", {-1, 1},
           bind<&Settings::sampling, &SamplingSettings::adaptive_target>()),
    number({"--adaptive-decay"}, "adaptive-p: how slowly the target adapts", "", {0, 0.99},
           bind<&Settings::sampling, &SamplingSettings::adaptive_decay>()),
    number({"--dynatemp-range"}, "range of the dynamic temperature", "0.0 = disabled", not_negative,
           bind<&Settings::sampling, &SamplingSettings::dynatemp_range>()),
    number({"--dynatemp-exp"}, "exponent of the dynamic temperature", "", not_negative,
           bind<&Settings::sampling, &SamplingSettings::dynatemp_exponent>()),
    number({"--mirostat"}, "Mirostat sampling, in place of top-k, top-p and typical",
           "0 = disabled, 1 = Mirostat, 2 = Mirostat 2.0", {0, 2},
           bind<&Settings::sampling, &SamplingSettings::mirostat>()),
    number({"--mirostat-lr"}, "Mirostat learning rate, parameter eta", "", not_negative,
           bind<&Settings::sampling, &SamplingSettings::mirostat_eta>()),
    number({"--mirostat-ent"}, "Mirostat target entropy, parameter tau", "", not_negative,
           bind<&Settings::sampling, &SamplingSettings::mirostat_tau>()),
};

}  // namespace

std::span<const Row> sampling_rows() { return rows; }

}  // namespace fermata::settings
