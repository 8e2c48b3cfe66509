// fermata [serve] [flags] | bench | sim | pages | doctor | version
#include "app/doctor.h"
#include "app/huge_pages.h"
#include "app/instance.h"
#include "app/pages.h"
#include "app/serve.h"
#include "app/sim.h"
#include "bench/bench.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace {

constexpr const char* usage =
    "usage: fermata [serve] [flags]   serve a model; flags are llama-server's, see --help\n"
    "       fermata bench WORKLOAD    measure this build on this machine; see bench --help\n"
    "       fermata sim               play random schedules and check them; see sim --help\n"
    "       fermata pages             a folder of saved conversations: ls, verify, show, gc\n"
    "       fermata doctor            what this machine has for serving, and what to mend\n"
    "       fermata version           the versions of fermata and libllama\n";

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string_view> args(argv + 1, argv + argc);
  std::string_view command = "serve";
  if (!args.empty() && !args.front().starts_with('-')) {
    command = args.front();
    args.erase(args.begin());
  }
  if (command == "serve") {
    return static_cast<int>(
        fermata::app::run_serve(args, fermata::settings::environment_of(environ)));
  }
  if (command == "bench") {
    fermata::app::restart_on_huge_pages();  // The bare loops are to have what servers have.
    return fermata::bench::run_bench(args);
  }
  if (command == "sim") return fermata::app::run_sim(args);
  if (command == "pages") return fermata::app::run_pages(args);
  if (command == "doctor") return fermata::app::run_doctor(args);
  if (command == "version") {
    if (!args.empty()) {
      std::fprintf(stderr, "error: version takes no arguments, leave '%s' out\n",
                   std::string(args.front()).c_str());
      return static_cast<int>(fermata::app::Exit::usage);
    }
    std::printf("%s\n", fermata::app::build_info().c_str());
    return 0;
  }
  std::fprintf(stderr, "error: '%s' is not a command\n%s", std::string(command).c_str(), usage);
  return static_cast<int>(fermata::app::Exit::usage);
}
