// One client's connection: reads requests, has them answered, writes the answers.
#pragma once

#include "http/access_log.h"
#include "http/body_budget.h"
#include "http/event.h"
#include "http/input_buffer.h"
#include "http/loop.h"
#include "http/request_parser.h"
#include "http/response.h"
#include "http/shared.h"
#include "http/transport.h"
#include "http/waker.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fermata::http {

// Lives on one event loop; everything happens on its thread. One coroutine goes through the phases
//
//   idle ──► receiving ──► waiting ──► sending ──► idle, or lingering ──► end
//     └──────────┴─────────────┴───────────┴──────────────────────────► end (client gone, stop)
//
// A TLS handshake comes before all of them.
//
// idle       No byte of a request has come. A graceful stop ends it.
// receiving  A request is incomplete. A fault or timeout is answered, then lingering.
// waiting    A worker or the exchange makes the answer. A read is always under way, so that a
//            client that goes away is seen at once; what it sends early stays in the buffer.
// sending    The head is out or on its way. The exchange is pulled only between two writes.
// lingering  The answer is out, our side is shut down, what still comes is thrown away: closing
//            with unread bytes would make the kernel drop the answer on its way.
//
// All callbacks only note what happened and raise one event; the coroutine looks at the facts.
class Connection final : public std::enable_shared_from_this<Connection>, private Wakeable {
 public:
  // With `refuse` it only says that the server is full.
  Connection(Transport transport, Shared& shared, Loop& loop, bool refuse);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // `place` is where the loop keeps it; handed back at the end. May end at once.
  void start(Connections::iterator place);
  void on_tick(Micros now);
  void on_stop();  // The loop's stop level has risen.
  // The client has taken no byte of what is being written for so long.
  bool is_stalled(Micros now, Micros time) const { return writing_ && now - stuck_at_ >= time; }

 private:
  struct Request {
    api::Inquiry inquiry;
    BodyCharge charge;
    bool keep_alive = false;
    bool http_1_0 = false;
  };
  struct AnswerForm {
    bool keep_alive = false;
    bool http_1_0 = false;
    bool head_only = false;
  };
  // A request on its way through the worker pool; outlives the connection if it must.
  struct Call {
    explicit Call(Request request) : request(std::move(request)) {}
    Request request;
    std::unique_ptr<api::Exchange> exchange;
    std::atomic<bool> abandoned{false};
    Connection* owner = nullptr;  // The loop's thread only; null when abandoned.
  };
  // What was pulled between two writes.
  struct Batch {
    std::optional<api::Head> head;
    std::string body;
    bool done = false;
    bool broken = false;
  };

  Task<void> serve();
  Task<bool> greet();
  Task<bool> serve_one();  // False: the connection is to end.
  Task<bool> await_request();
  Task<std::optional<Request>> receive();
  Task<bool> answer(Request request);
  Task<bool> deliver(AnswerForm form);
  Task<bool> deliver_whole(const Batch& batch, AnswerForm form);
  Task<bool> deliver_stream(Batch batch, AnswerForm form);
  Task<bool> next_batch(Batch& batch);
  Task<void> yield();
  Task<bool> refuse(Refusal refusal, AnswerForm form);
  Task<bool> send(std::string_view first, std::string_view second, std::string_view third);
  Task<void> linger();
  Task<void> changed();

  bool begin(Request request);
  bool submit(Request request);
  static void hand_over(Call& call);
  void hold(std::unique_ptr<api::Exchange> exchange);
  void abandon();  // What is under way for the request, if anything.
  void drop_exchange();
  bool pull(Batch& batch);
  void arm_ping();
  std::string head_for(api::Head head, HeadFrame frame, AnswerForm& form);
  void note(const api::Inquiry& inquiry);

  void read_more(std::size_t bytes);
  void watch();
  void on_read(ErrorCode error, std::size_t bytes);
  void on_wake() override;
  void peer_gone();

  void arm(Micros timeout);
  void disarm() { deadline_.reset(); }
  // Nobody is there any more, or nobody is to be served any more.
  bool ended() const { return peer_gone_ || loop_.stop_level() == StopLevel::now; }

  Transport transport_;
  Shared& shared_;
  Loop& loop_;
  const bool refuse_;
  Connections::iterator place_;

  Visit visit_;
  InputBuffer input_;
  Event event_;
  std::shared_ptr<Waker> waker_;
  std::shared_ptr<Call> call_;
  std::optional<WorkerPool::Ticket> ticket_;
  std::unique_ptr<api::Exchange> exchange_;

  // Facts that the callbacks note.
  bool peer_gone_ = false;
  bool timed_out_ = false;
  bool woken_ = false;
  bool ping_due_ = false;
  bool drained_ = false;  // The last pull found nothing; without a wake the next would too.

  // What the coroutine is doing, for the callbacks.
  bool greeting_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool answering_ = false;  // A client that goes away now cancels its request.
  bool must_linger_ = false;
  Micros stuck_at_{0};  // When the write under way began.
  std::optional<Micros> deadline_;
  std::optional<Micros> ping_at_;
};

}  // namespace fermata::http
