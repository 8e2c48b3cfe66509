#include "bench/client.h"

#include "base/clock.h"

#include <cstdlib>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace fermata::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

beast::error_code connect(asio::ip::tcp::socket& socket, int port) {
  beast::error_code error;
  socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)}, error);
  beast::error_code ignored;
  if (!error) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  return error;
}

http::request<http::string_body> completion_request(const Json& body) {
  http::request<http::string_body> request(http::verb::post, "/completion", 11, body.dump());
  request.set(http::field::host, "127.0.0.1");
  request.prepare_payload();
  return request;
}

http::response<http::string_body> get(asio::ip::tcp::socket& socket, beast::flat_buffer& buffer,
                                      const char* target, beast::error_code& error) {
  http::request<http::empty_body> request(http::verb::get, target, 11);
  request.set(http::field::host, "127.0.0.1");
  http::write(socket, request, error);
  http::response<http::string_body> response;
  if (!error) http::read(socket, buffer, response, error);
  return response;
}

// The numbers of "tokens":[1,2] in an event; cheap, as the clock runs.
void take_tokens(const std::string& event, std::vector<int>& out) {
  const std::string name = "\"tokens\":[";
  const std::size_t begin = event.find(name);
  if (begin == std::string::npos) return;
  const char* at = event.c_str() + begin + name.size();
  while (*at >= '0' && *at <= '9') {
    char* end = nullptr;
    out.push_back(static_cast<int>(std::strtol(at, &end, 10)));
    at = *end == ',' ? end + 1 : end;
  }
}

// Takes the whole events out of `text` and notes when they came.
void take_events(std::string& text, Micros now, StreamFigures& figures) {
  for (std::size_t end = text.find("\n\n"); end != std::string::npos; end = text.find("\n\n")) {
    const std::string event = text.substr(0, end);
    text.erase(0, end + 2);
    if (event == ": preempted") figures.parked.push_back(now);
    if (event == ": resumed") figures.resumed.push_back(now);
    if (!event.starts_with("data: {")) continue;
    if (event.find("\"stop\":true") != std::string::npos) {
      figures.last = Json::parse(event.substr(6), nullptr, false);
    } else {
      figures.events.push_back(now);
      const std::size_t before = figures.tokens.size();
      take_tokens(event, figures.tokens);
      figures.tokens_in_event.push_back(figures.tokens.size() - before);
    }
  }
}

}  // namespace

Result<StreamFigures, std::string> stream_completion(int port, const Json& body,
                                                     const std::stop_token& stop) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  beast::error_code error = connect(socket, port);
  if (error) return Err("cannot connect to the server: " + error.message());

  Json asked = body;
  asked["stream"] = true;
  const SteadyClock clock;
  StreamFigures figures;
  figures.sent = clock.now();
  http::write(socket, completion_request(asked), error);
  if (error) return Err("cannot send to the server: " + error.message());

  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  http::read_header(socket, buffer, parser, error);
  // The body is taken as it grows, so that each event has its time.
  std::string& text = parser.get().body();
  while (!error && !parser.is_done()) {
    http::read_some(socket, buffer, parser, error);
    take_events(text, clock.now(), figures);
    if (stop.stop_requested()) return figures;
  }
  if (error) return Err("the stream broke: " + error.message());
  if (parser.get().result() != http::status::ok) return Err("the server answered: " + text);
  if (figures.last.is_discarded() || figures.last.is_null()) {
    return Err(std::string("the stream ended without its final event"));
  }
  return figures;
}

Result<Json, std::string> post_json(int port, const char* path, const Json& body) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  beast::error_code error = connect(socket, port);
  if (error) return Err("cannot connect to the server: " + error.message());
  http::request<http::string_body> request = completion_request(body);
  request.target(path);
  http::write(socket, request, error);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  if (!error) http::read(socket, buffer, parser, error);
  if (error) return Err("the server does not answer: " + error.message());
  if (parser.get().result() != http::status::ok) {
    return Err("the server answered: " + parser.get().body());
  }
  return Json::parse(parser.get().body());
}

bool is_healthy(int port) { return ask_health(port, 1).ok(); }

Result<void, std::string> ask_health(int port, int times) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  beast::error_code error = connect(socket, port);
  beast::flat_buffer buffer;
  for (int i = 0; i < times && !error; ++i) {
    const auto answer = get(socket, buffer, "/health", error);
    if (!error && answer.result() != http::status::ok) {
      return Err("/health answers " + std::to_string(answer.result_int()));
    }
  }
  if (error) return Err("/health: " + error.message());
  return {};
}

Result<double, std::string> read_metric(int port, const std::string& name) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  beast::error_code error = connect(socket, port);
  beast::flat_buffer buffer;
  http::response<http::string_body> answer;
  if (!error) answer = get(socket, buffer, "/metrics", error);
  if (error) return Err("/metrics: " + error.message());
  const std::string line = "\n" + name + " ";
  const std::size_t at = answer.body().find(line);
  if (at == std::string::npos) return Err("/metrics does not tell " + name);
  return std::atof(answer.body().c_str() + at + line.size());
}

std::vector<Gap> gaps_of(const StreamFigures& figures) {
  std::vector<Gap> out;
  for (std::size_t i = 1; i < figures.events.size(); ++i) {
    if (figures.tokens_in_event[i] != 1) continue;
    const Micros from = figures.events[i - 1], to = figures.events[i];
    out.push_back({from, to, static_cast<double>((to - from).value) / 1000.0});
  }
  return out;
}

Json times_of(const std::vector<StreamFigures>& streams, Micros began) {
  const auto times = [&](const std::vector<Micros>& at) {
    Json out = Json::array();
    for (const Micros each : at) out.push_back((each - began).value / 1000);
    return out;
  };
  Json all = Json::array();
  for (const StreamFigures& stream : streams) {
    all.push_back({{"tokens_ms", times(stream.events)},
                   {"parked_ms", times(stream.parked)},
                   {"resumed_ms", times(stream.resumed)}});
  }
  return all;
}

class OpenStreams::Impl {
 public:
  explicit Impl(int port) : port_(port) {}

  Result<void, std::string> add(const Json& body) {
    asio::ip::tcp::socket socket(io_);
    beast::error_code error = connect(socket, port_);
    if (!error) {
      http::write(socket, completion_request(body), error);
    }
    if (error) return Err("a stream cannot be opened: " + error.message());
    sockets_.push_back(std::move(socket));
    return {};
  }

 private:
  int port_;
  asio::io_context io_;
  std::vector<asio::ip::tcp::socket> sockets_;
};

OpenStreams::OpenStreams(int port) : impl_(std::make_unique<Impl>(port)) {}
OpenStreams::~OpenStreams() = default;

Result<void, std::string> OpenStreams::add(const Json& body, int count) {
  for (int i = 0; i < count; ++i) {
    if (auto done = impl_->add(body); !done) return done;
  }
  return {};
}

std::vector<Result<StreamFigures, std::string>> stream_each(int port,
                                                            const std::vector<Json>& bodies) {
  std::vector<Result<StreamFigures, std::string>> results(bodies.size(),
                                                          Err(std::string("not run")));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      threads.emplace_back([&, i] { results[i] = stream_completion(port, bodies[i]); });
    }
  }
  return results;
}

Result<std::vector<StreamFigures>, std::string> stream_completions(
    int port, const std::vector<Json>& bodies) {
  std::vector<StreamFigures> out;
  for (auto& result : stream_each(port, bodies)) {
    if (!result) return Err(result.error());
    out.push_back(std::move(*result));
  }
  return out;
}

Json plain_request(int number, int tokens) {
  return {{"prompt", std::vector<int>(32, 300 + number)},
          {"n_predict", tokens},
          {"return_tokens", true},
          {"temperature", 0},
          {"ignore_eos", true},
          {"cache_prompt", false}};
}

}  // namespace fermata::bench
