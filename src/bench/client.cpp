#include "bench/client.h"

#include "base/clock.h"

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
    }
  }
}

}  // namespace

Result<StreamFigures, std::string> stream_completion(int port, const Json& body,
                                                     const std::stop_token& stop) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  beast::error_code error;
  socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)}, error);
  if (error) return Err("cannot connect to the server: " + error.message());
  socket.set_option(asio::ip::tcp::no_delay(true), error);

  Json asked = body;
  asked["stream"] = true;
  http::request<http::string_body> request(http::verb::post, "/completion", 11, asked.dump());
  request.set(http::field::host, "127.0.0.1");
  request.prepare_payload();
  http::write(socket, request, error);
  if (error) return Err("cannot send to the server: " + error.message());

  const SteadyClock clock;
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  http::read_header(socket, buffer, parser, error);
  StreamFigures figures;
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

bool is_healthy(int port) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  beast::error_code error;
  socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)}, error);
  if (error) return false;
  http::request<http::empty_body> request(http::verb::get, "/health", 11);
  request.set(http::field::host, "127.0.0.1");
  http::write(socket, request, error);
  beast::flat_buffer buffer;
  http::response<http::string_body> response;
  if (!error) http::read(socket, buffer, response, error);
  return !error && response.result() == http::status::ok;
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
