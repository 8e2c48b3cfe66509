// What requests get that do not say otherwise, where that needs files or the vocabulary.
#pragma once

#include "base/result.h"
#include "engine/vocabulary.h"
#include "settings/settings.h"

#include <string>

namespace fermata::app {

// The settings with the text of a grammar in place of a file or a schema. Error, one line: what
// cannot be read, or what no sampler of the model could use.
Result<settings::Settings, std::string> with_default_grammar(const settings::Settings& settings,
                                                             const engine::Vocabulary& vocabulary);

}  // namespace fermata::app
