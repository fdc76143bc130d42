// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "engine/shared/dialect.h"
#include "engine/shared/leg_name.h"
#include "engine/shared/token_ids.h"
#include "fleet/fleet.h"
#include "handoff/handoff.h"
#include "handoff/request.h"
#include "handoff/state_machine.h"
#include "handoff/suspects.h"
#include "http_client/exchange.h"
#include "net/deadlines.h"
#include "scheduling/queue/prefill_coalescer.h"
#include "scheduling/scheduler.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::handoff {

using boost::asio::awaitable;

// Role. One request on its way through prefill and decode: reports events to the state machine,
//   which decides the order of the legs, and performs its actions. The session itself decides the
//   blame for a failed leg, and whether push falls back to pull.
// Confinement. One I/O thread.
// Lifetime. Shared by the client's flow and the legs beside it, whichever ends last. The client's
//   flow calls leave() before its Cancellation and RequestTrace end.
class HandoffSession : public std::enable_shared_from_this<HandoffSession> {
 public:
  HandoffSession(Handoff& handoff, HandoffRequest request, RequestTrace& trace,
                 Cancellation& cancellation);

  // The client's flow: until an answer is there to be read, or the error is.
  awaitable<Result<void>> begin();
  void leave();

  // See UpstreamResponse.
  std::optional<std::string>& whole() { return whole_; }
  http_client::Exchange& stream() { return *decode_exchange_; }
  void first_token();
  void produced(std::uint64_t tokens) { decode_booking_.produced(tokens); }
  void finished();
  void forbid_migration() { machine_.forbid_migration(); }
  awaitable<Result<void>> recover(Error error, const engine::Progress* progress);
  bool handed_off() const { return handed_off_; }
  std::shared_ptr<const engine::PrefillOutcome> prefill() const { return outcome_; }
  awaitable<void> await_prefill(bool needed);

 private:
  // The parts of a leg. They may be released before or while the leg runs.
  struct Material {
    std::shared_ptr<const engine::ClientBody> body;
    std::shared_ptr<const std::string> token_ids;
  };
  // Blocks that a prefill worker shall be relieved of, independent of the session's next steps.
  struct Release {
    model::HandoffMode mode;            // as the legs are spoken
    std::shared_ptr<fleet::Pool> pool;  // with the workers that can take them over
    model::HandoffMode workers;         // theirs
    std::shared_ptr<const fleet::Worker> holder;
    std::uint32_t rank;  // of the holder
    engine::HandoffTicket ticket;
    std::shared_ptr<const engine::PrefillOutcome> outcome;
    scheduling::Constraints transfer;
    Material material;
    wire::Headers headers;
    std::optional<engine::Progress> progress;
  };
  // The message of a decode leg.
  struct Parcel {
    wire::SplicedBody body;
    std::string signature;  // the header line that its hand-off is signed with; empty: none
  };
  struct ReleaseTries {
    scheduling::Excluded failed;
    int in_vain = 0;  // waited for until their time was over
  };

  void dispatch(const Input& input);
  void perform(Action action);
  awaitable<Result<void>> proceed();
  awaitable<void> wait_for_something_to_do();
  void wake();
  std::chrono::milliseconds grace() const;
  Error error_of(Cause cause) const;
  Material material() const { return {request_.body, request_.token_ids}; }
  engine::ClientCall call(const fleet::Worker& worker, engine::Leg leg, const Material& material,
                          const engine::Progress* progress, engine::LegName name = {}) const;
  // The request id of the next leg to the worker.
  engine::LegName name_leg(const fleet::Worker& worker);
  // The header line that signs a decode leg's hand-off; empty if no signature is needed.
  std::string signature(model::HandoffMode mode, const engine::HandoffTicket& ticket,
                        const engine::PrefillOutcome& outcome) const;
  static std::shared_ptr<const engine::PrefillOutcome> nothing_answered();
  awaitable<wire::SplicedBody> prefill_body(const engine::Dialect& dialect,
                                            engine::ClientCall wanted) const;
  awaitable<Parcel> plain_parcel(engine::ClientCall wanted, const fleet::Worker& worker) const;
  awaitable<Parcel> decode_parcel(model::HandoffMode mode, engine::ClientCall wanted,
                                  const engine::HandoffTicket& ticket,
                                  std::shared_ptr<const engine::PrefillOutcome> outcome,
                                  engine::DecodePurpose purpose) const;
  // Has the worker stop a leg that was given up.
  void abort(std::shared_ptr<const fleet::Worker> worker, engine::LegName name);

  void begin_attempt();
  awaitable<void> choose_prefill();
  awaitable<void> choose_decode();
  // See Scheduler::place; notes in the trace how the request was admitted.
  awaitable<Result<scheduling::Placement>> place(bool alone);
  std::size_t tries() const;
  awaitable<void> prefill_leg();
  void prefill_threw();
  awaitable<Result<engine::PrefillOutcome>> read_prefill(http_client::Exchange& exchange,
                                                         const engine::Dialect& dialect,
                                                         const fleet::Worker& worker) const;
  awaitable<void> decode_leg();
  void prefill_sent();
  // Legs together: waits until the prefill request is written or the decode leg dropped.
  awaitable<void> await_prefill_sent();
  // The router will not see when the prompt of the decode leg has been computed.
  void prefill_unseen(const boost::asio::any_io_executor& home);
  void release();
  void send_release(Release release);
  void send_held_releases();
  awaitable<void> release_leg(Release release);
  // True if nothing is left to do.
  awaitable<bool> try_release(const Release& release, ReleaseTries& tries);
  awaitable<void> find_holder_again(Release& release);
  awaitable<Result<void>> send(http_client::Exchange& exchange, const fleet::Worker& worker,
                               std::optional<std::uint32_t> rank, const wire::Headers& headers,
                               const wire::SplicedBody& body, const std::string& request_id,
                               std::string_view signature = {},
                               std::string* error_type = nullptr) const;
  static engine::DecodeEnd end_of(const http_client::Exchange& exchange,
                                  const fleet::Worker& worker, const Error& error,
                                  std::string error_type);
  bool frees_blocks(const engine::DecodeEnd& end) const;
  void prefill_failed(Error error, fleet::Worker& worker);
  void decode_failed(Error error, std::string error_type = {});
  void log_failure(std::string_view leg, const fleet::Worker& worker, const Error& error) const;
  static void count_failure(fleet::Worker& worker, const Error& error);
  void invalidate_peer_if_stale(const Error& error);
  // Whether the worker's process has ended under a leg that failed so.
  awaitable<bool> has_ended(const fleet::Worker& worker, const Error& error,
                            const http_client::Exchange& exchange) const;
  // It has, under a leg that was sent at that time and had not got its first token.
  void ended_under(const fleet::Worker& worker, Suspects::Time sent);
  // The decode leg failed before its first token: whether its worker ended is found out.
  awaitable<void> look_for_end(const Error& error);
  // Before a worker is chosen: whether none is to have it any more.
  bool is_poison_by_now();
  void condemn(std::size_t ended_workers, std::string_view last);
  void clear_suspicion();
  Suspects::Request request_seen() const;
  void count_waste();

  Handoff& handoff_;
  HandoffRequest request_;
  scheduling::Scheduler scheduler_;
  HandoffStateMachine machine_;
  std::vector<Action> todo_;                               // of the client's flow
  std::unique_ptr<boost::asio::steady_timer> wake_timer_;  // while the client's flow waits

  Cancellation& cancellation_;  // for the client's flow only
  RequestTrace* trace_;         // null once the client's flow has left
  std::optional<Cancellation::Listener> listener_;
  std::optional<Error> gone_;  // why the answer is not wanted any more
  std::unique_ptr<net::Deadline> grace_;

  // State of the current attempt.
  std::unique_ptr<engine::HandoffTicket> ticket_;
  std::optional<model::HandoffMode> mode_;
  std::shared_ptr<const fleet::Worker> prefill_worker_;
  std::uint32_t prefill_rank_ = 0;
  fleet::Booking prefill_booking_;  // until its leg begins
  fleet::Transfer transfer_;        // from the end of that leg to the first token
  fleet::Booking decode_booking_;
  std::unique_ptr<boost::asio::steady_timer> unseen_;  // until its prompt must have been computed
  bool bypassed_ = false;                              // the decode worker was chosen to do both
  scheduling::LeaderLease lease_;                      // others wait for this prompt
  http_client::Exchange* prefill_exchange_ = nullptr;  // while that leg runs
  std::unique_ptr<http_client::Exchange> decode_exchange_;
  engine::LegName prefill_name_;
  engine::LegName decode_name_;
  std::string authorization_;  // to abort legs with, as they had it
  // The prefill's answer; empty, but never null, before it comes.
  std::shared_ptr<const engine::PrefillOutcome> outcome_ = nothing_answered();
  MemoryShare outcome_memory_;               // of the answer that it is made of
  std::optional<std::string> final_answer_;  // if it ended the request
  bool handed_off_ = false;
  bool streaming_ = false;
  bool prefill_sent_ = false;  // its worker has the request
  bool prefill_dropped_ = false;
  bool decode_dropped_ = false;
  bool decode_accepted_ = false;  // its worker has answered 200

  Suspects::Time decode_sent_{};

  bool suspect_ = false;                // a worker has ended under it
  std::vector<Release> held_releases_;  // until it is suspect no more
  std::optional<Error> poison_;         // several have
  std::optional<Error> prefill_error_;
  std::optional<Error> decode_error_;
  std::optional<std::string> whole_;
  std::unique_ptr<engine::Progress> progress_;  // the text to continue
};

}  // namespace baton::handoff
