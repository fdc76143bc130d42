// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/handoff_rules.h"
#include "model/worker.h"
#include "scheduling/handoff_permissions.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

// Disaggregated serving in one page.
//
// A prefill worker computes the prompt: its KV cache and one token. A decode worker takes the cache
// over and produces the answer. The router sends one HTTP request to each, a *leg*. There are two
// families:
//
//   Prefill first.  The prefill's answer names the blocks that the decode worker must fetch. Until
//                   then the prefill worker keeps them *pinned*: a router that gives up in between
//                   must still send a decode leg, for one token, only to release them.
//   Together.       Both legs are sent at once and the workers meet by themselves. Each waits for
//                   the other, for minutes: if one fails, the router must close the other.
//
// The decode's first token is the proof that the cache has arrived. Before it everything can be
// repeated unseen; after it the client has bytes, and only a continuation can save the stream.
//
// A client may leave at any moment. A running transfer must not be cut, and no worker may be left
// waiting for a partner that will not come. Which leg is dropped, and when, differs per mode, and
// all of it is in this machine. It uses no sockets, no clock and no randomness: the shell
// (session.h) reports events and performs actions.
namespace baton::handoff {

using engine::LegOrder;
using engine::mode_table;
using engine::ModeRules;
using engine::rules_of;
using engine::WhenAbandoned;
using scheduling::HandoffPermissions;

// The events. Each leg ends with exactly one of its last events, also if it was dropped.
enum class Event : std::uint8_t {
  PrefillChosen,  // booked; carries its mode
  NoPrefill,      // no worker can be chosen
  DecodeChosen,
  NoDecode,
  PrefillAccepted,  // the head of its answer is there
  PrefillKept,      // last: answered, a decode leg may have the cache
  PrefillEmpty,     // last: answered, but nothing was kept; decode computes the prompt itself
  PrefillEnded,     // last: answered, and the request is complete
  PrefillFailed,    // last
  DecodeAccepted,   // its answer is about to come
  FirstToken,       // the cache has arrived
  DecodeFinished,   // last
  DecodeFailed,     // last
  ClientGone,
  GraceOver,  // the time to complete a hand-off without its client is over
};

// Facts of a failed leg.
struct Failure {
  bool retryable = true;   // not the request's own fault
  bool untouched = false;  // the worker never began: the blocks to fetch are still there
  bool either = false;     // of a decode leg: it may have missed its prefill worker
  bool freed = false;      // of a decode leg: the workers free the blocks between themselves
  auto operator<=>(const Failure&) const = default;
};

struct Input {
  Event event;
  model::HandoffMode mode = model::HandoffMode::NixlPull;  // PrefillChosen
  Failure failure = {};                                    // PrefillFailed, DecodeFailed
  bool kept = false;       // PrefillEnded: blocks are held all the same
  bool elsewhere = false;  // NoDecode: both workers may be found in another namespace
};

// Actions. The shell does the first group at once, the second in the client's own flow.
enum class Action : std::uint8_t {
  DropPrefill,
  DropDecode,
  SendRelease,  // a decode leg for one token, to have the pinned blocks taken over
  StartGrace,

  ChoosePrefill,      // pick and book in one step, → PrefillChosen, NoPrefill or PrefillFailed
  ChooseDecode,       // → DecodeChosen or NoDecode
  SendPrefill,        // to the chosen one
  SendDecode,         // with the fields of the hand-off
  SendAlone,          // one worker does both
  Deliver,            // the decode leg's answer is the client's
  AnswerFromPrefill,  // the prefill's answer is the client's; the end
  FailRequest,        // with the error of failed_by(); the end
};

enum class Cause : std::uint8_t { None, NoPrefill, NoDecode, Prefill, Decode, ClientGone };

// Role. Decides how one request gets through prefill and decode, whatever happens.
// Confinement. One thread.
// Invariants. At most one decode leg lives at a time. Blocks that a prefill worker pinned are
//   fetched, or a release is sent, unless the request was condemned. The client gets exactly one
//   end: an answer or an error, never one after the other. No leg waits for a partner that has
//   failed. Nothing but a release is sent for a client that has left.
// Size. Its members are the state of one request, most of them a bit; every decision depends on
//   several. A test visits all of its states.
class HandoffStateMachine {
 public:
  using Actions = std::vector<Action>;

  explicit HandoffStateMachine(HandoffPermissions policy)
      : policy_(policy), retries_left_(policy.retries) {}

  Actions begin();
  Actions on(const Input& input);

  // The answer has taken a turn after which no other worker could go on with it.
  void forbid_migration() { policy_.migrations = 0; }

  // Several workers' processes ended under the request: no other one gets it, not even to release
  // its blocks. Their lease ends by itself.
  void condemn() { condemned_ = true; }

  // The cause of the failure, after FailRequest.
  Cause failed_by() const { return cause_; }
  // The client's request has its end; legs may still be winding down.
  bool ended() const { return ended_; }
  bool quiet() const { return !prefill_lives() && !decode_lives(); }
  // Two workers serve, or are meant to; false once one does both.
  bool handing_off() const { return !alone_; }
  std::size_t attempts() const { return attempts_; }  // at a whole hand-off, from 1
  std::size_t retries() const { return retries_; }
  std::size_t migrations() const { return migrations_; }

  auto operator<=>(const HandoffStateMachine&) const = default;

 private:
  enum class Prefill : std::uint8_t { None, Choosing, Live, Kept, Empty, Ended, Failed };
  // Failed: before its first token. Lost: after it.
  enum class Decode : std::uint8_t { None, Choosing, Live, Streaming, Finished, Failed, Lost };
  bool may_serve_alone() const {
    return policy_.decode_may_prefill && !policy_.required && !condemned_;
  }
  bool prefill_lives() const { return prefill_ == Prefill::Live; }
  bool decode_lives() const { return decode_ == Decode::Live || decode_ == Decode::Streaming; }
  bool may_hold_blocks() const;
  bool awaits_prefill() const;
  void begin_grace_anew();
  bool together() const { return !alone_ && rules_ && rules_->order == LegOrder::Together; }

  void take_in(const Input& input);
  void on_prefill_chosen(model::HandoffMode mode);
  void on_no_prefill();
  void on_decode_chosen();
  void on_no_decode(bool elsewhere);

  void proceed();
  void wind_down();
  void after_failed_prefill();
  void after_failed_decode();
  void after_lost_stream();

  bool may_try_again();
  void take_back_retry();
  void begin_attempt();
  void serve_alone();
  void choose_decode();
  void release_if_pinned();
  void leave_prefill();
  void start_grace();
  void drop_prefill();
  void drop_decode();
  void finish(Action last, Cause cause);
  void say(Action action) { said_.push_back(action); }

  HandoffPermissions policy_;
  std::size_t retries_left_;
  std::size_t attempts_ = 0;
  std::size_t retries_ = 0;
  std::size_t migrations_ = 0;
  const ModeRules* rules_ = nullptr;  // of the chosen prefill worker
  Prefill prefill_ = Prefill::None;
  Decode decode_ = Decode::None;
  Failure prefill_failure_;
  Failure decode_failure_;
  Cause last_cause_ = Cause::None;  // why the attempt before this one failed
  Cause cause_ = Cause::None;
  bool retry_unsent_ = false;  // counted, but no worker has been found for it yet
  bool alone_ = false;
  bool pinned_ = false;
  bool prefill_dropped_ = false;
  bool decode_dropped_ = false;
  bool condemned_ = false;
  bool awaiting_ = false;  // a prefill's answer, though its decode leg has failed
  bool gone_ = false;
  bool grace_over_ = false;
  bool ended_ = false;
  Actions said_;  // while an event is taken in
};

}  // namespace baton::handoff
