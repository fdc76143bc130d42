// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/state_machine.h"

#include <utility>

namespace baton::handoff {

using model::HandoffMode;
using model::OnPrefillFailure;

HandoffStateMachine::Actions HandoffStateMachine::begin() {
  alone_ = !policy_.disaggregate;
  begin_attempt();
  return std::exchange(said_, {});
}

HandoffStateMachine::Actions HandoffStateMachine::on(const Input& input) {
  take_in(input);
  if (gone_) {
    wind_down();
  } else if (!ended_) {
    proceed();
  }
  return std::exchange(said_, {});
}

void HandoffStateMachine::take_in(const Input& input) {
  switch (input.event) {
    case Event::PrefillChosen:
      return on_prefill_chosen(input.mode);
    case Event::NoPrefill:
      return on_no_prefill();
    case Event::DecodeChosen:
      return on_decode_chosen();
    case Event::NoDecode:
      return on_no_decode(input.elsewhere);
    case Event::PrefillAccepted:
      return;
    case Event::PrefillKept:
      prefill_ = Prefill::Kept;
      pinned_ = may_hold_blocks();
      return begin_grace_anew();
    case Event::PrefillEmpty:
      prefill_ = Prefill::Empty;
      return;
    case Event::PrefillEnded:
      prefill_ = Prefill::Ended;
      pinned_ = input.kept && may_hold_blocks();
      return;
    case Event::PrefillFailed:
      prefill_ = Prefill::Failed;
      prefill_failure_ = input.failure;
      // Closed by us, it may have answered at the same moment, and keep blocks that are never
      // fetched.
      if (prefill_dropped_ && together() && rules_->release_in_doubt) pinned_ = may_hold_blocks();
      return;
    case Event::DecodeAccepted:
      if (!gone_ && !decode_dropped_) say(Action::Deliver);
      return;
    case Event::FirstToken:
      decode_ = Decode::Streaming;
      pinned_ = false;
      return;
    case Event::DecodeFinished:
      decode_ = Decode::Finished;
      ended_ = true;
      return;
    case Event::DecodeFailed:
      decode_ = decode_ == Decode::Streaming ? Decode::Lost : Decode::Failed;
      decode_failure_ = input.failure;
      if (decode_failure_.freed) pinned_ = false;
      return;
    case Event::ClientGone:
      if (ended_ || gone_) return;
      gone_ = true;
      return start_grace();
    case Event::GraceOver:
      grace_over_ = gone_ || awaits_prefill();  // or it was for an attempt that is over
      return;
  }
}

// A decode leg that has begun its answer has the blocks already.
bool HandoffStateMachine::may_hold_blocks() const {
  const bool failed = decode_ == Decode::Failed && !decode_failure_.freed;
  return rules_->keeps_blocks && (decode_ == Decode::None || decode_ == Decode::Live || failed);
}

// The transfer begins only now.
void HandoffStateMachine::begin_grace_anew() {
  if (gone_ && !ended_ && rules_->when_abandoned == WhenAbandoned::AwaitPrefill) start_grace();
}

// A prefill that answers while Baton closes it keeps blocks, and its answer, which names them, is
// lost.
bool HandoffStateMachine::awaits_prefill() const {
  return together() && rules_->when_abandoned == WhenAbandoned::AwaitPrefill && prefill_lives() &&
         decode_ == Decode::Failed && !decode_failure_.freed && !prefill_dropped_;
}

void HandoffStateMachine::on_prefill_chosen(HandoffMode mode) {
  rules_ = &rules_of(mode);
  prefill_ = Prefill::None;
  if (gone_) return;
  if (rules_->order == LegOrder::Together) return choose_decode();
  prefill_ = Prefill::Live;
  retry_unsent_ = false;
  say(Action::SendPrefill);
}

void HandoffStateMachine::on_no_prefill() {
  prefill_ = Prefill::None;
  if (gone_) return;
  take_back_retry();
  // After a failed prefill it is for the operator to say whether decode may do without.
  const bool alone_allowed =
      last_cause_ != Cause::Prefill || policy_.on_prefill_failure == OnPrefillFailure::Fallback;
  if (alone_allowed && may_serve_alone()) return serve_alone();
  finish(Action::FailRequest, last_cause_ == Cause::None ? Cause::NoPrefill : last_cause_);
}

void HandoffStateMachine::on_decode_chosen() {
  decode_ = Decode::None;
  if (gone_) return;
  decode_ = Decode::Live;
  retry_unsent_ = false;
  if (alone_) return say(Action::SendAlone);
  if (together()) {
    prefill_ = Prefill::Live;
    say(Action::SendPrefill);
  }
  say(Action::SendDecode);
}

void HandoffStateMachine::on_no_decode(bool elsewhere) {
  decode_ = Decode::None;
  if (gone_) return;
  take_back_retry();
  release_if_pinned();
  if (elsewhere && !alone_ && may_try_again()) {
    if (last_cause_ == Cause::None) last_cause_ = Cause::NoDecode;
    return begin_attempt();
  }
  finish(Action::FailRequest, last_cause_ == Cause::None ? Cause::NoDecode : last_cause_);
}

// Decides the next step from the states of both legs, while the client waits.
void HandoffStateMachine::proceed() {
  // A leg whose partner cannot do its part any more is closed at once: otherwise it would wait for
  // minutes.
  const bool prefill_over = prefill_ == Prefill::Failed || prefill_ == Prefill::Ended;
  if (decode_ == Decode::Live && prefill_over) drop_decode();
  if (prefill_lives() && (decode_ == Decode::Failed || decode_ == Decode::Lost)) leave_prefill();
  const bool choosing = prefill_ == Prefill::Choosing || decode_ == Decode::Choosing;
  if (choosing || prefill_lives() || decode_lives()) return;

  if (decode_ == Decode::Lost) return after_lost_stream();
  if (prefill_ == Prefill::Ended) {
    release_if_pinned();
    return finish(Action::AnswerFromPrefill, Cause::None);
  }
  if (prefill_ == Prefill::Failed && !prefill_dropped_) return after_failed_prefill();
  if (decode_ == Decode::Failed) return after_failed_decode();
  choose_decode();
}

// The client has left. Nothing more is begun for it, and nothing is left hanging.
void HandoffStateMachine::wind_down() {
  const bool in_vain = alone_ || prefill_ == Prefill::Failed || prefill_ == Prefill::Ended ||
                       (rules_ && rules_->when_abandoned == WhenAbandoned::DropDecode);
  const bool awaited = rules_ && rules_->when_abandoned == WhenAbandoned::AwaitPrefill &&
                       prefill_lives() && decode_lives();
  const bool too_long = grace_over_ && !awaited;
  if (decode_ == Decode::Streaming || (decode_ == Decode::Live && (in_vain || too_long)))
    drop_decode();
  // Without a decode leg the blocks are not fetched. If the router closed that leg, a transfer may
  // still run: the prefill gets the grace to end by itself.
  const bool deserted = together() && !decode_lives() && !decode_dropped_ && !awaits_prefill();
  if (prefill_lives() && (too_long || deserted)) drop_prefill();
  if (!decode_lives()) release_if_pinned();
  if (ended_ || decode_lives() || (prefill_lives() && !together())) return;
  finish(Action::FailRequest, Cause::ClientGone);
}

void HandoffStateMachine::after_failed_prefill() {
  last_cause_ = Cause::Prefill;
  const OnPrefillFailure policy = policy_.on_prefill_failure;
  if (prefill_failure_.retryable && policy != OnPrefillFailure::Fail) {
    if (may_try_again()) return begin_attempt();
    if (policy == OnPrefillFailure::Fallback && may_serve_alone()) return serve_alone();
  }
  finish(Action::FailRequest, Cause::Prefill);
}

void HandoffStateMachine::after_failed_decode() {
  last_cause_ = Cause::Decode;
  if (!decode_failure_.retryable || !may_try_again()) {
    release_if_pinned();
    const bool without_prefill = decode_failure_.retryable && decode_failure_.either &&
                                 policy_.on_prefill_failure == OnPrefillFailure::Fallback;
    if (without_prefill && may_serve_alone()) return serve_alone();
    return finish(Action::FailRequest, Cause::Decode);
  }
  // Blocks kept by the prefill serve another decode worker only if the first one surely did not
  // touch them: fetched blocks may hold another request's cache by now.
  const bool same_handoff =
      !together() && (prefill_ == Prefill::Empty || (pinned_ && decode_failure_.untouched));
  if (alone_ || same_handoff) return choose_decode();
  release_if_pinned();
  begin_attempt();
}

void HandoffStateMachine::after_lost_stream() {
  last_cause_ = Cause::Decode;
  if (!decode_failure_.retryable || policy_.migrations == 0 || condemned_) {
    return finish(Action::FailRequest, Cause::Decode);
  }
  --policy_.migrations;
  ++migrations_;
  retries_left_ = policy_.retries;
  alone_ = !policy_.disaggregate;
  begin_attempt();
}

bool HandoffStateMachine::may_try_again() {
  if (retries_left_ == 0 || condemned_) return false;
  --retries_left_;
  ++retries_;
  retry_unsent_ = true;
  return true;
}

// No worker was found for the retry.
void HandoffStateMachine::take_back_retry() {
  if (std::exchange(retry_unsent_, false)) --retries_;
}

void HandoffStateMachine::begin_attempt() {
  ++attempts_;
  prefill_ = Prefill::None;
  decode_ = Decode::None;
  prefill_dropped_ = false;
  awaiting_ = false;
  grace_over_ = false;
  if (alone_) return choose_decode();
  prefill_ = Prefill::Choosing;
  say(Action::ChoosePrefill);
}

void HandoffStateMachine::serve_alone() {
  alone_ = true;
  prefill_ = Prefill::None;
  choose_decode();
}

void HandoffStateMachine::choose_decode() {
  decode_ = Decode::Choosing;
  decode_dropped_ = false;
  say(Action::ChooseDecode);
}

void HandoffStateMachine::release_if_pinned() {
  if (!pinned_) return;
  pinned_ = false;
  if (!condemned_) say(Action::SendRelease);
}

// Its decode leg has failed, and the client still waits.
void HandoffStateMachine::leave_prefill() {
  if (!awaits_prefill() || grace_over_) return drop_prefill();
  if (!std::exchange(awaiting_, true)) start_grace();
}

void HandoffStateMachine::start_grace() {
  grace_over_ = false;
  say(Action::StartGrace);
}

void HandoffStateMachine::drop_prefill() {
  if (std::exchange(prefill_dropped_, true)) return;
  say(Action::DropPrefill);
}

void HandoffStateMachine::drop_decode() {
  if (std::exchange(decode_dropped_, true)) return;
  say(Action::DropDecode);
}

void HandoffStateMachine::finish(Action last, Cause cause) {
  ended_ = true;
  cause_ = cause;
  say(last);
}

}  // namespace baton::handoff
