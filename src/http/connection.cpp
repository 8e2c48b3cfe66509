#include "http/connection.h"

#include "base/check.h"
#include "base/log.h"
#include "http/cors.h"
#include "http/target.h"

#include <tuple>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <spdlog/fmt/fmt.h>

namespace fermata::http {
namespace {

constexpr std::size_t idle_read_bytes = 2048;
constexpr std::size_t watch_read_bytes = 512;
constexpr std::size_t linger_read_bytes = 16 * 1024;
// What a client may send ahead while its answer is being made; more waits in the kernel.
constexpr std::size_t read_ahead_bytes_max = 16 * 1024;
// A body earns a new read timeout with each so many bytes, so a trickle does not hold a connection.
constexpr std::size_t body_progress_bytes = 16 * 1024;
// Pieces are joined up to about this size before they are written.
constexpr std::size_t batch_bytes = 64 * 1024;
// A stream's buffer that grew beyond this gives its memory back.
constexpr std::size_t batch_kept_bytes = 4 * 1024;

constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

Refusal not_found() {
  return {.status = 404, .type = "not_found_error", .message = "File Not Found"};
}

Refusal too_slow() { return {.status = 408, .message = "the request did not arrive in time"}; }

Refusal too_busy() {
  return {.status = 503,
          .type = "unavailable_error",
          .message = "too many requests are waiting to be read, try again",
          .retry_after_seconds = 1};
}

Refusal too_many_bodies() {
  return {.status = 503,
          .type = "unavailable_error",
          .message = "too many large request bodies are under way, try again",
          .retry_after_seconds = 1};
}

Refusal too_many_connections(int limit) {
  return {.status = 503,
          .type = "unavailable_error",
          .message = fmt::format("all {} connections are in use, try again", limit),
          .retry_after_seconds = 1};
}

}  // namespace

Connection::Connection(Transport transport, Shared& shared, Loop& loop, bool refuse)
    : transport_(std::move(transport)), shared_(shared), loop_(loop), refuse_(refuse) {}

Connection::~Connection() = default;

void Connection::start(Connections::iterator place) {
  place_ = place;
  boost::asio::co_spawn(loop_.io(), serve(),
                        [self = shared_from_this()](std::exception_ptr thrown) {
                          FERMATA_CHECK(thrown == nullptr, "an exception left a connection");
                        });
}

// ---- The coroutine ------------------------------------------------------------------------------

Task<void> Connection::serve() {
  if (!co_await greet()) {
    must_linger_ = false;
  } else if (refuse_) {
    Refusal refusal = too_many_connections(shared_.options.connections_max);
    co_await refuse(std::move(refusal), AnswerForm{});
  } else {
    while (co_await serve_one()) {
    }
  }
  if (must_linger_) co_await linger();
  if (waker_) waker_->detach();
  transport_.close();
  loop_.remove(place_, refuse_);
}

// The handshake of TLS.
Task<bool> Connection::greet() {
  greeting_ = true;
  arm(shared_.options.handshake_timeout);
  const ErrorCode error = co_await transport_.shake_hands();
  greeting_ = false;
  disarm();
  if (error) log_debug("a TLS handshake failed: {}", error.message());
  co_return !error;
}

Task<bool> Connection::serve_one() {
  if (!co_await await_request()) co_return false;
  visit_ = Visit{.begun = shared_.clock.now()};
  std::optional<Request> request = co_await receive();
  bool more = false;
  if (request) more = co_await answer(std::move(*request));
  if (shared_.options.log_requests) log_visit(visit_, shared_.clock.now());
  if (!request) co_return false;
  if (loop_.stop_level() == StopLevel::none) co_return more;
  must_linger_ = true;
  co_return false;
}

Task<bool> Connection::await_request() {
  arm(shared_.options.idle_timeout);
  for (;;) {
    while (input_.view().starts_with('\r') || input_.view().starts_with('\n')) input_.consume(1);
    if (!input_.empty()) co_return true;
    if (ended() || timed_out_ || loop_.stop_level() != StopLevel::none) co_return false;
    read_more(idle_read_bytes);
    co_await changed();
  }
}

Task<std::optional<Connection::Request>> Connection::receive() {
  RequestParser parser(
      {.header_bytes_max = static_cast<std::size_t>(shared_.options.header_max.value),
       .body_bytes_max = static_cast<std::size_t>(shared_.options.body_max.value)});
  BodyCharge charge(shared_.stats.body_bytes, shared_.options.bodies_max.value);
  bool told_to_continue = false;
  std::size_t progress = 0;
  arm(shared_.options.read_timeout);
  for (;;) {
    const std::size_t taken = parser.feed(input_.view());
    input_.consume(taken);
    const bool affordable = charge.cover(parser.body_bytes());
    if (parser.complete() && affordable) break;
    if (parser.fault() || timed_out_ || !affordable) {
      if (!affordable) shared_.stats.requests_refused.add();
      note(parser.inquiry());
      Refusal refusal = parser.fault() ? *parser.fault()
                        : affordable   ? too_slow()
                                       : too_many_bodies();
      co_await refuse(std::move(refusal), AnswerForm{});
      co_return std::nullopt;
    }
    if (ended()) co_return std::nullopt;
    progress += taken;
    if (progress >= body_progress_bytes) {
      progress = 0;
      arm(shared_.options.read_timeout);
    }
    if (parser.awaits_continue() && !told_to_continue) {
      told_to_continue = true;
      if (!co_await send(continue_line, "", "")) co_return std::nullopt;
      arm(shared_.options.read_timeout);
    }
    read_more(parser.wanted());
    co_await changed();
  }
  disarm();
  note(parser.inquiry());
  const bool keep_alive = parser.keep_alive();
  co_return Request{parser.take_inquiry(), std::move(charge), keep_alive, parser.is_http_1_0()};
}

Task<bool> Connection::answer(Request request) {
  const AnswerForm form{.keep_alive = request.keep_alive,
                        .http_1_0 = request.http_1_0,
                        .head_only = request.inquiry.method == api::Method::head};
  if (request.inquiry.method == api::Method::options) {
    const Batch batch{
        .head = preflight_head(shared_.options.cors, request.inquiry), .body = "", .done = true};
    co_return co_await deliver_whole(batch, form);
  }
  std::optional<std::string> path = strip_prefix(request.inquiry.path, shared_.options.api_prefix);
  if (!path) co_return co_await refuse(not_found(), form);
  request.inquiry.path = std::move(*path);

  answering_ = true;
  if (!begin(std::move(request))) {
    answering_ = false;
    shared_.stats.requests_refused.add();
    co_return co_await refuse(too_busy(), form);
  }
  while (!exchange_) {
    if (ended()) {
      abandon();
      co_return false;
    }
    watch();
    co_await changed();
  }
  const bool more = co_await deliver(form);
  abandon();
  co_return more;
}

Task<bool> Connection::deliver(AnswerForm form) {
  Batch batch;
  if (!co_await next_batch(batch)) co_return false;
  FERMATA_CHECK(batch.head.has_value(), "an answer starts with its head");
  if (batch.head->stream) co_return co_await deliver_stream(std::move(batch), form);
  FERMATA_CHECK(batch.done, "an answer of known length comes in one piece");
  co_return co_await deliver_whole(batch, form);
}

Task<bool> Connection::deliver_whole(const Batch& batch, AnswerForm form) {
  const bool bodiless = forbids_body(batch.head->status);
  const HeadFrame frame{.framing = bodiless ? Framing::none : Framing::length,
                        .length = batch.body.size()};
  const std::string head = head_for(*batch.head, frame, form);
  const bool body_wanted = !bodiless && !form.head_only;
  const std::string_view body = body_wanted ? std::string_view(batch.body) : std::string_view();
  const bool sent = co_await send(head, body, "");
  co_return sent&& form.keep_alive;
}

Task<bool> Connection::deliver_stream(Batch batch, AnswerForm form) {
  const std::optional<std::uint64_t> length = batch.head->length;
  const bool chunked = !form.http_1_0 && !length;
  form.keep_alive = form.keep_alive && (chunked || length);
  const Framing framing = length    ? Framing::length
                          : chunked ? Framing::chunked
                                    : Framing::until_close;
  std::string before =
      head_for(*batch.head,
               {.framing = framing, .length = static_cast<std::size_t>(length.value_or(0))}, form);
  batch.head.reset();
  if (form.head_only) {
    drop_exchange();
    const bool sent = co_await send(before, "", "");
    co_return sent&& form.keep_alive;
  }
  for (;;) {
    std::string_view after;
    if (chunked && !batch.body.empty()) {
      before += chunk_prefix(batch.body.size());
      after = batch.done ? last_chunk_after_data : chunk_suffix;
    } else if (chunked && batch.done) {
      after = last_chunk;
    }
    if (!co_await send(before, batch.body, after)) co_return false;
    if (batch.done) co_return form.keep_alive;
    if (batch.broken) {
      visit_.is_cut = true;
      co_return false;
    }
    if (!drained_) co_await yield();
    before.clear();
    batch.body.clear();
    if (batch.body.capacity() > batch_kept_bytes) batch.body.shrink_to_fit();
    arm_ping();
    const bool fresh = co_await next_batch(batch);
    ping_at_.reset();
    ping_due_ = false;
    if (!fresh) {
      visit_.is_cut = true;
      co_return false;
    }
  }
}

// Fills `batch` with news, or with a ping when one is due. False: the client is gone.
Task<bool> Connection::next_batch(Batch& batch) {
  for (;;) {
    if (pull(batch)) co_return true;
    if (ended()) co_return false;
    if (std::exchange(ping_due_, false)) {
      shared_.stats.pings.add();
      batch.body = exchange_->ping();
      co_return true;
    }
    watch();
    co_await changed();
  }
}

Task<bool> Connection::refuse(Refusal refusal, AnswerForm form) {
  Batch batch;
  batch.head = refusal_head(refusal);
  batch.body = refusal_body(refusal);
  batch.done = true;
  const bool more = co_await deliver_whole(batch, form);
  co_return more;
}

// Lets others on this event loop have a turn: a source and a client that are both fast would keep
// it for themselves.
Task<void> Connection::yield() { return boost::asio::post(loop_.io(), use_task); }

// Writes all of it. False: the client is gone, or counts as gone.
Task<bool> Connection::send(std::string_view first, std::string_view second,
                            std::string_view third) {
  OutputBytes left(first, second, third);
  bool at_once = true;  // What fits into the socket's buffer needs no turn of the event loop.
  while (left.size() > 0) {
    arm(shared_.options.write_timeout);
    ErrorCode error = boost::asio::error::would_block;
    std::size_t sent = 0;
    if (at_once) sent = transport_.write_now(left, error);
    if (error == boost::asio::error::would_block) {
      if (answering_) watch();
      writing_ = true;
      stuck_at_ = shared_.clock.now();
      std::tie(error, sent) = co_await transport_.write_some(left);
      writing_ = false;
    }
    at_once = false;
    shared_.stats.bytes_out.add(sent);
    visit_.bytes += sent;
    left.consume(sent);
    const bool cancelled = (answering_ && peer_gone_) || loop_.stop_level() == StopLevel::now;
    if (error || timed_out_ || cancelled) {
      peer_gone_ = true;
      visit_.is_cut = true;
      co_return false;
    }
  }
  disarm();
  co_return true;
}

Task<void> Connection::linger() {
  transport_.shutdown_send();
  arm(shared_.options.linger_timeout);
  while (!ended() && !timed_out_) {
    input_.consume(input_.size());
    read_more(linger_read_bytes);
    co_await changed();
  }
}

Task<void> Connection::changed() {
  while (!event_.take()) co_await event_.wait();
}

// ---- The exchange -------------------------------------------------------------------------------

// In place or on a worker. False: the worker queue is full.
bool Connection::begin(Request request) {
  if (!shared_.service.is_cheap(request.inquiry)) return submit(std::move(request));
  hold(shared_.service.begin(std::move(request.inquiry)));
  return true;
}

bool Connection::submit(Request request) {
  auto call = std::make_shared<Call>(std::move(request));
  call->owner = this;
  ticket_ = shared_.pool.submit([call, &service = shared_.service, &io = loop_.io()] {
    if (call->abandoned) return;
    std::unique_ptr<api::Exchange> exchange = service.begin(std::move(call->request.inquiry));
    if (call->abandoned) return;
    call->exchange = std::move(exchange);
    boost::asio::post(io, [call] { hand_over(*call); });
  });
  if (!ticket_) return false;
  call_ = std::move(call);
  return true;
}

void Connection::hand_over(Call& call) {
  Connection* const owner = call.owner;
  if (owner == nullptr) {
    call.exchange.reset();  // Abandoned while the worker was at it.
    return;
  }
  owner->hold(std::move(call.exchange));
  owner->call_.reset();
  owner->event_.raise();
}

void Connection::hold(std::unique_ptr<api::Exchange> exchange) {
  FERMATA_CHECK(exchange != nullptr, "a service always answers");
  if (!waker_) waker_ = std::make_shared<Waker>(static_cast<Wakeable&>(*this), loop_.io());
  exchange_ = std::move(exchange);
  shared_.stats.exchanges_open.add(1);
  drained_ = false;
  exchange_->wake_with([waker = waker_] { waker->wake(); });
}

void Connection::abandon() {
  answering_ = false;
  if (call_) {
    call_->abandoned = true;
    call_->owner = nullptr;
    shared_.pool.withdraw(*ticket_);
    call_.reset();
    shared_.stats.requests_abandoned.add();
  }
  if (exchange_) {
    shared_.stats.requests_abandoned.add();
    drop_exchange();
  }
}

void Connection::drop_exchange() {
  exchange_.reset();
  shared_.stats.exchanges_open.add(-1);
  answering_ = false;
}

// Takes what there is, up to a batch; true when that is anything. With the last piece the exchange
// has done its work and goes.
bool Connection::pull(Batch& batch) {
  if (drained_ && !woken_) return false;
  woken_ = false;
  waker_->rearm();
  bool any = false;
  drained_ = false;
  while (!batch.done && !batch.broken && batch.body.size() < batch_bytes) {
    api::Piece piece = exchange_->pull();
    if (!piece.head && piece.body.empty() && !piece.done && !piece.broken) {
      drained_ = true;
      break;
    }
    any = true;
    if (piece.head) batch.head = std::move(piece.head);
    if (batch.body.empty()) {
      batch.body = std::move(piece.body);
    } else {
      batch.body += piece.body;
    }
    batch.done = piece.done;
    batch.broken = piece.broken;
  }
  if (batch.done || batch.broken) drop_exchange();
  return any;
}

void Connection::arm_ping() {
  const int seconds = exchange_->ping_interval_seconds();
  if (seconds > 0) ping_at_ = shared_.clock.now() + Micros(1'000'000) * seconds;
}

// The head's bytes; also settles whether the connection goes on after this answer.
std::string Connection::head_for(api::Head head, HeadFrame frame, AnswerForm& form) {
  if (loop_.stop_level() != StopLevel::none) form.keep_alive = false;
  if (!form.keep_alive) must_linger_ = true;
  frame.keep_alive = form.keep_alive;
  frame.http_1_0 = form.http_1_0;
  shared_.stats.count_answer(head.status);
  visit_.status = head.status;
  add_cors(shared_.options.cors, visit_.origin, head.headers);
  return format_head(head, frame, shared_.options.server_name);
}

// What is said of the request when it has been answered.
void Connection::note(const api::Inquiry& inquiry) {
  if (inquiry.path.empty()) return;
  visit_.method = inquiry.method;
  visit_.path = inquiry.path;
  visit_.origin = api::header(inquiry, "origin");
}

// ---- Callbacks ----------------------------------------------------------------------------------

void Connection::read_more(std::size_t bytes) {
  if (reading_ || peer_gone_) return;
  reading_ = true;
  transport_.read_some(input_.prepare(bytes),
                       [self = shared_from_this()](ErrorCode error, std::size_t count) {
                         self->on_read(error, count);
                       });
}

void Connection::watch() {
  if (input_.size() < read_ahead_bytes_max) read_more(watch_read_bytes);
}

void Connection::on_read(ErrorCode error, std::size_t bytes) {
  reading_ = false;
  input_.commit(bytes);
  if (error && error != boost::asio::error::operation_aborted) {
    peer_gone();
  } else {
    event_.raise();
  }
}

void Connection::on_wake() {
  woken_ = true;
  event_.raise();
}

void Connection::peer_gone() {
  peer_gone_ = true;
  if (writing_ && answering_) transport_.cancel();
  event_.raise();
}

void Connection::on_tick(Micros now) {
  if (deadline_ && now >= *deadline_) {
    deadline_.reset();
    timed_out_ = true;
    if (writing_ || greeting_) transport_.cancel();
    event_.raise();
  } else if (ping_at_ && now + shared_.options.tick >= *ping_at_) {
    ping_at_.reset();
    ping_due_ = true;
    event_.raise();
  } else if (answering_ && !reading_ && !peer_gone_ && transport_.peer_has_closed()) {
    peer_gone();  // Behind more early bytes than are read.
  }
}

void Connection::on_stop() {
  if (loop_.stop_level() == StopLevel::now) transport_.close();
  if (greeting_) transport_.cancel();
  event_.raise();
}

void Connection::arm(Micros timeout) {
  timed_out_ = false;
  deadline_ = shared_.clock.now() + timeout;
}

}  // namespace fermata::http
