// What the routes need of the rest of the server. Built by app, constant for the service's life.
#pragma once

#include "core/request.h"
#include "core/sampling_params.h"
#include "engine/model.h"
#include "engine/vocabulary.h"
#include "metrics/exposition.h"
#include "scheduler/scheduler.h"
#include "settings/settings.h"

#include <functional>
#include <string>
#include <vector>

namespace fermata::api {

class ControlTexts;
class LiveChats;

// All pointers are non-owning and outlive the service.
struct Context {
  const settings::Settings* settings = nullptr;
  const engine::Vocabulary* vocabulary = nullptr;
  const engine::ModelInfo* model = nullptr;
  scheduler::Scheduler* scheduler = nullptr;
  LiveChats* live_chats = nullptr;  // Set by the service; so is the next one.
  const ControlTexts* control_texts = nullptr;
  const engine::Embedder* embedder = nullptr;  // Null: texts do not become vectors here.
  std::string model_name;    // What replies call the model: the alias, or the file's name.
  std::string build;         // "fermata 0.1.0 (libllama v0.4.0)".
  std::int64_t started = 0;  // Seconds since 1970.
  Owner owner{};             // Of all requests that come by this context.
  // Adds what parts that api does not know count; may be empty. Thread-safe.
  std::function<void(Exposition&)> more_metrics;
};

}  // namespace fermata::api
