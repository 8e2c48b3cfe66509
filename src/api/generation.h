// One generation as an answer: events of its channel in, bytes of one API flavour out.
#pragma once

#include "api/context.h"
#include "api/error.h"
#include "api/exchange.h"
#include "api/fields.h"
#include "api/probabilities.h"
#include "core/events.h"
#include "core/request.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::api {

// Everything a flavour needs to word the end of one choice.
struct Outcome {
  std::size_t index = 0;
  std::size_t prompt = 0;  // Of several prompts, which.
  const Request* request = nullptr;
  FinalEvent final;
  std::string text;  // The whole reply, valid UTF-8.
  std::vector<TokenId> tokens;
  std::string probabilities;  // As in Shown; of a reply that is not streamed.
};

// What a piece of a streamed reply shows.
struct Shown {
  std::string_view text;           // Valid UTF-8; may be empty.
  std::string_view probabilities;  // A JSON array of tokens, see Probabilities; empty: none.
  std::string_view timings = {};   // A JSON object; empty: nobody asked.
  Tokens prompt = {};              // The length of its prompt.
};

// How one API words a reply. Called on an I/O thread, one call at a time.
class ReplyFormat {
 public:
  virtual ~ReplyFormat() = default;
  // Stream: what comes before the first token of choice i, if anything.
  virtual void begin(std::size_t i, std::string& out) = 0;
  // Stream: how far the prompt of choice i is. A flavour without a place for it says nothing.
  virtual void progress(std::size_t /*i*/, const ProgressEvent& /*progress*/,
                        std::string& /*out*/) {}
  // Stream: a token of choice i with what it released; without text there are no probabilities
  // either.
  virtual void token(std::size_t i, const TokenEvent& event, const Shown& shown,
                     std::string& out) = 0;
  // Stream: the end of a choice. `tail` is what no token event carried; outcome.text includes its
  // text.
  virtual void end(const Outcome& outcome, const Shown& tail, std::string& out) = 0;
  // Stream: what comes after the end of the last choice, if anything.
  virtual void close(std::span<const Outcome> choices, std::string& out) = 0;
  // Stream: a chunk that adds nothing, to show that the reply goes on.
  virtual void keepalive(std::string& out) = 0;
  // The one JSON body of a reply that is not streamed.
  virtual std::string whole(std::span<const Outcome> choices) = 0;
  // Stream: what it ends with when it fails.
  virtual void failure(const ApiError& error, std::string& out);
  // The body of an answer that is an error.
  virtual std::string whole_failure(const ApiError& error) { return error_json(error); }
};

struct GenerationOptions {
  bool stream = false;
  int ping_interval_s = 30;  // Below 1: none.
  bool ping_chunks = false;  // A ping is a chunk of the flavour, not a comment.
  ProbabilityOptions probabilities;
};

// One submitted choice.
struct Started {
  std::size_t prompt = 0;  // Of several prompts, which.
  std::shared_ptr<const Request> request;
  std::shared_ptr<scheduler::EventChannel> channel;
};

// Takes over the choices of one client request, one at least. If it is destroyed before the end, or
// one of them fails, all others are abandoned.
std::unique_ptr<Exchange> generation_exchange(std::vector<Started> started,
                                              const engine::Vocabulary& vocabulary,
                                              std::unique_ptr<ReplyFormat> format,
                                              const GenerationOptions& options);

// A choice of OpenAI's reply, which shows the probabilities where there are any.
std::string choice_text(const Json& choice, std::string_view probabilities);
// OpenAI's reply with these choices, separated by commas.
std::string with_choices(const Json& reply, std::string_view choices);

// "data: {json}\n\n"
void append_event(std::string& out, std::string_view json);
// The same under a name: "event: {name}\ndata: {json}\n\n"
void append_named_event(std::string& out, std::string_view name, std::string_view json);

// Of all choices: each prompt once, tokens and parks of all, and the longest of their times.
FinalEvent total(std::span<const Outcome> choices);

Json timings_json(const Timings& timings);
Json progress_json(const ProgressEvent& progress);
// What parking did to the request and where its beginning came from: the "fermata" of a reply.
Json fermata_json(const FinalEvent& final);
// Adds "timings" and "fermata".
void add_figures(Json& reply, const FinalEvent& final);
Json usage_json(const Timings& timings, Tokens prompt);
// "stop" or "length", as OpenAI words it.
std::string_view finish_reason_name(FinishReason reason);

}  // namespace fermata::api
