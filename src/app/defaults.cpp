#include "app/defaults.h"

#include "api/sampling_fields.h"
#include "app/files.h"

#include <utility>

namespace fermata::app {
Result<settings::Settings, std::string> with_default_grammar(const settings::Settings& settings,
                                                             const engine::Vocabulary& vocabulary) {
  settings::Settings out = settings;
  settings::SamplingSettings& sampling = out.sampling;
  std::string flag = "--grammar";
  const auto read = [&](const std::string& path, const char* name, std::string& into) {
    flag = name;
    auto text = read_text(name, path);
    if (!text) return text.error();
    into = std::move(text).value();
    return std::string();
  };
  std::string fault;
  if (!sampling.grammar_file.empty()) {
    fault = read(std::exchange(sampling.grammar_file, ""), "--grammar-file", sampling.grammar);
  } else if (!sampling.json_schema_file.empty()) {
    fault = read(std::exchange(sampling.json_schema_file, ""), "--json-schema-file",
                 sampling.json_schema);
  } else if (!sampling.json_schema.empty()) {
    flag = "--json-schema";
  }
  if (!fault.empty()) return Err(fault);
  if (!sampling.json_schema.empty()) {
    auto grammar = vocabulary.grammar_from_schema(std::exchange(sampling.json_schema, ""));
    if (!grammar) return Err(flag + ": " + grammar.error().message);
    sampling.grammar = std::move(grammar).value();
  }
  const auto sampler = vocabulary.make_sampler(api::default_sampling(sampling), {});
  if (sampler) return out;
  const bool of_grammar = sampler.error().field == "grammar";
  return Err((of_grammar ? flag + ": " : "the sampling settings: ") + sampler.error().message);
}

}  // namespace fermata::app
