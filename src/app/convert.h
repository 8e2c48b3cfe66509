// Settings into the words of the parts they are for.
#pragma once

#include "core/geometry.h"
#include "engine/faulty.h"
#include "engine/llama/backend.h"
#include "engine/model.h"
#include "http/server.h"
#include "scheduler/scheduler.h"
#include "settings/settings.h"
#include "store/store.h"

#include <string>

namespace fermata::app {

Geometry geometry_of(const settings::Settings& settings);
engine::EngineOptions engine_options_of(const settings::Settings& settings);
engine::llama::ModelOptions model_options_of(const settings::Settings& settings);
engine::InjectedFaults injected_faults_of(const settings::Settings& settings);
// REQUIRES: settings.pages.folder is not empty.
store::StoreOptions store_options_of(const settings::Settings& settings);
scheduler::SchedulerOptions scheduler_options_of(const settings::Settings& settings);
http::ServerOptions server_options_of(const settings::Settings& settings);
LogOptions log_options_of(const settings::Settings& settings);
// What replies call the model: the first alias, or the file's name.
std::string model_name_of(const settings::Settings& settings);

}  // namespace fermata::app
