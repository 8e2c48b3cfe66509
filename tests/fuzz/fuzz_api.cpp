// A body of a POST: the first byte chooses the route, the rest is the body. Whatever it is, the
// answer is one of the documented ones, and a request that was accepted can be pulled and left. The
// model is the fake one, on this thread.
#include "api/service.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/fake/fake_engine.h"
#include "engine/fake/fake_vocabulary.h"
#include "input.h"

#include <array>
#include <memory>

#include <nlohmann/json.hpp>

namespace fermata::fuzz {
namespace {

constexpr auto paths = std::to_array<const char*>(
    {"/completion", "/v1/completions", "/v1/chat/completions", "/apply-template", "/tokenize",
     "/detokenize", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/infill"});

class Server {
 public:
  Server()
      : vocabulary_(engine::fake::make_vocabulary()),
        engine_({}, geometry(), {}),
        scheduler_(engine_, *vocabulary_, clock_, {}),
        service_(api::make_service(context())) {}

  void answer(const char* path, std::string body) {
    api::Inquiry inquiry;
    inquiry.method = api::Method::post;
    inquiry.path = path;
    inquiry.body = std::move(body);
    {
      const auto exchange = service_->begin(std::move(inquiry));
      require(exchange != nullptr, "there is an answer");
      exchange->wake_with([] {});
      pull(*exchange);
    }
    // Whoever is left is dropped.
    for (int ticks = 0; scheduler_.tick(); ++ticks) require(ticks < 64, "who left is dropped");
  }

 private:
  static Geometry geometry() {
    Geometry out;
    out.n_ctx = Tokens(2048);
    out.n_parallel = 4;
    return out;
  }

  api::Context context() {
    api::Context out;
    out.settings = &settings_;
    out.vocabulary = vocabulary_.get();
    out.model = &model_;
    out.scheduler = &scheduler_;
    out.model_name = "fake";
    out.build = "fuzz";
    return out;
  }

  void pull(api::Exchange& exchange) {
    std::string body;
    int status = 0;
    bool is_stream = false;
    for (int pulls = 0; pulls < 6; ++pulls) {
      const api::Piece piece = exchange.pull();
      if (piece.head) {
        status = piece.head->status;
        is_stream = piece.head->stream;
        require(status == 200 || (status >= 400 && status < 500) || status == 501,
                "an answer is a documented one", piece.body);
      }
      body += piece.body;
      if (piece.done) {
        if (!is_stream) check_json(status, body);
        return;
      }
      scheduler_.tick();
    }
  }

  static void check_json(int status, const std::string& body) {
    const auto json = nlohmann::json::parse(body, nullptr, false);
    require(!json.is_discarded(), "an answer is JSON", body);
    if (status == 200) return;
    const auto error = json.find("error");
    require(error != json.end() && error->is_object(), "an error has its object", body);
    require(error->value("message", "") != "", "an error says what", body);
  }

  settings::Settings settings_;
  engine::ModelInfo model_;
  SteadyClock clock_;
  std::unique_ptr<engine::Vocabulary> vocabulary_;
  engine::fake::FakeEngine engine_;
  scheduler::Scheduler scheduler_;
  std::unique_ptr<api::Service> service_;
};

}  // namespace
}  // namespace fermata::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fermata::fuzz;
  if (size == 0) return 0;
  static Server server;
  const char* path = paths[data[0] % paths.size()];
  server.answer(path, std::string(text_of(data + 1, size - 1)));
  return 0;
}
