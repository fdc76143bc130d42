// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/feed_reader.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace baton::kvcache {
namespace {

constexpr int kRepliesAtOnce = 128;
// A replay is given up after so many times the maximum wait for one reply.
constexpr int kMostReplayTimeouts = 30;
constexpr std::chrono::seconds kLongestPause{30};
// A subscription misses a batch that is published between a replay and its own start. After this
// time it has started, and the replay is asked once more.
constexpr std::chrono::milliseconds kSettling{500};
constexpr std::chrono::seconds kQuiet{10};

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

bool FeedReader::LogRateLimiter::passes(Clock::time_point now) {
  if (last && now < *last + kQuiet) return false;
  last = now;
  return true;
}

FeedReader::FeedReader(FeedContext& context, FeedSpec spec, Slot slot, StatusCell& cell)
    : context_(context),
      spec_(std::move(spec)),
      cell_(cell),
      applier_(context.index, slot, spec_.block_size),
      sequence_({.replayable = !spec_.replay.empty(), .held_batches = context.options.held_batches},
                spec_.resume, *this) {}

FeedReader::~FeedReader() {
  stop_replay();
  context_.readiness.set_time(*this, std::nullopt);
}

void FeedReader::opened(std::string_view endpoint, bool bound) {
  if (std::exchange(opened_, true)) return;
  context_.log.info("feed_opened", {{"worker", spec_.name},
                                    {"rank", std::int64_t{spec_.holder.rank}},
                                    {"endpoint", endpoint},
                                    {"bound", bound},
                                    {"replay", !spec_.replay.empty()}});
}

void FeedReader::refused(std::size_t attempts) {
  if (!reached_) refusals_ += attempts;
}

void FeedReader::disconnected() { sequence_.disconnected(); }

void FeedReader::connected() {
  reached_ = true;
  refusals_ = 0;
  fresh_ = true;
  confirm_at_.reset();
  sequence_.reconnected();
  follow_up();
}

void FeedReader::published(const Framed& batch) {
  fresh_ = false;
  confirm_at_.reset();
  last_batch_ = Clock::now();
  sequence_.live(batch.sequence, batch.payload);
  follow_up();
}

void FeedReader::garbled() {
  ++garbled_;
  unreadable("the message does not have the frames of a batch");
}

void FeedReader::apply(std::span<const std::byte> payload, Sequence::Origin origin) {
  const auto head = applier_.apply_batch(payload);
  broken_ = !head.has_value();
  if (applier_.refused_size() != refused_size_) report_size();
  if (head) {
    if (origin == Sequence::Origin::Live) {
      const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
      lag_ = now - std::chrono::duration<double>(head->timestamp);
    }
    return;
  }
  // An unreadable batch may have removed blocks, and a replay would not be more readable.
  damaged_ = true;
  applier_.forget();
  unreadable(head.error().message());
}

void FeedReader::report_size() {
  refused_size_ = applier_.refused_size();
  context_.log.warning("feed_block_size", {{"worker", spec_.name},
                                           {"rank", std::int64_t{spec_.holder.rank}},
                                           {"configured", std::int64_t{*spec_.block_size}},
                                           {"told", number(refused_size_)}});
}

void FeedReader::forget() {
  damaged_ = false;
  applier_.forget();
}

void FeedReader::unreadable(std::string_view problem) {
  ++unreadable_;
  // The first, the second, the fourth …
  if (!std::has_single_bit(unreadable_)) return;
  context_.log.warning("feed_unreadable", {{"worker", spec_.name},
                                           {"rank", std::int64_t{spec_.holder.rank}},
                                           {"error", problem},
                                           {"count", number(unreadable_)}});
}

FeedState FeedReader::state() const {
  if (broken_) return FeedState::Broken;
  const FeedState state = sequence_.state();
  return damaged_ && state == FeedState::Live ? FeedState::Gap : state;
}

FeedStatus FeedReader::status() const {
  const Sequence::Counts& counts = sequence_.counts();
  FeedStatus status{.holder = spec_.holder,
                    .state = state(),
                    .position = sequence_.position(),
                    .last_batch = last_batch_,
                    .lag = lag_,
                    .gaps = counts.gaps,
                    .lost = counts.lost,
                    .replayed = counts.replayed,
                    .duplicates = counts.duplicates,
                    .restarts = counts.restarts,
                    .refusals = refusals_,
                    .shape = applier_.shape(),
                    .resumable = applier_.resumable(),
                    .tally = applier_.tally()};
  status.tally.malformed_batches += garbled_;
  return status;
}

void FeedReader::show() {
  FeedStatus status = this->status();
  {
    const locks::Lock lock(cell_.mutex);
    cell_.status = std::move(status);
  }
  context_.changes.note(cell_, spec_.holder);
}

void FeedReader::follow_up() {
  if (sequence_.counts() != reported_ || repairing_ || !lived_) report();
  const auto now = Clock::now();
  if (fresh_ && !sequence_.wanted()) {
    fresh_ = false;
    if (!spec_.replay.empty()) confirm_at_ = now + kSettling;
  }
  tend_replay(now);
}

void FeedReader::report() {
  const auto now = Clock::now();
  telemetry::Logger& log = context_.log;
  const std::string_view worker = spec_.name;
  const std::int64_t rank = spec_.holder.rank;
  const Sequence::Counts counts = sequence_.counts();
  const Sequence::Counts before = std::exchange(reported_, counts);
  const std::int64_t sequence =
      sequence_.position() ? number(sequence_.position()->sequence) : std::int64_t{-1};

  if (counts.restarts != before.restarts && restart_limiter_.passes(now))
    log.warning("feed_restarted",
                {{"worker", worker}, {"rank", rank}, {"restarts", number(counts.restarts)}});
  if (counts.gaps != before.gaps) {
    if (!repairing_) repairing_ = before;
    if (gap_limiter_.passes(now))
      log.warning("feed_gap", {{"worker", worker},
                               {"rank", rank},
                               {"sequence", sequence},
                               {"replay", !spec_.replay.empty()}});
  }
  if (counts.lost != before.lost && lost_limiter_.passes(now))
    log.warning("feed_lost", {{"worker", worker},
                              {"rank", rank},
                              {"batches", number(counts.lost - before.lost)},
                              {"sequence", sequence}});
  if (sequence_.wanted()) return;
  if (repairing_) {
    if (counts.lost == repairing_->lost && repaired_limiter_.passes(now))
      log.info("feed_repaired", {{"worker", worker},
                                 {"rank", rank},
                                 {"batches", number(counts.replayed - repairing_->replayed)},
                                 {"sequence", sequence}});
    repairing_.reset();
  }
  if (!lived_ && sequence_.position() && last_batch_) {
    lived_ = true;
    log.info("feed_live", {{"worker", worker},
                           {"rank", rank},
                           {"sequence", sequence},
                           {"replayed", number(counts.replayed)}});
  }
}

void FeedReader::tend_replay(Clock::time_point now) {
  const auto wanted = sequence_.wanted();
  if (wanted != asked_) {
    stop_replay();
    asked_ = wanted;
    attempts_ = 0;
    ask_at_.reset();
    // The engine answers from the thread that publishes: it is not asked over and over.
    if (wanted)
      ask_at_ = last_asked_ ? std::max(now, *last_asked_ + context_.options.replay_pause) : now;
  }
  if (ask_at_ && *ask_at_ <= now) ask(now);

  std::optional<Clock::time_point> due = confirm_at_;
  const auto also = [&due](Clock::time_point time) { due = due ? std::min(*due, time) : time; };
  if (ask_at_) also(*ask_at_);
  if (replay_) also(std::min(reply_by_, end_by_));
  context_.readiness.set_time(*this, due);
}

void FeedReader::ask(Clock::time_point now) {
  ask_at_.reset();
  last_asked_ = now;
  auto socket = make_replay(context_.zmq, spec_.replay, asked_->from);
  if (!socket) return attempt_failed(now);
  replay_ = *std::move(socket);
  reply_by_ = now + context_.options.replay_timeout;
  end_by_ = now + kMostReplayTimeouts * context_.options.replay_timeout;
  if (!context_.readiness.add(descriptor(*replay_), *this)) {
    replay_.reset();
    attempt_failed(now);
  }
}

void FeedReader::attempt_failed(Clock::time_point now) {
  stop_replay();
  ++attempts_;
  if (attempts_ >= context_.options.replay_attempts) {
    if (silent_limiter_.passes(now))
      context_.log.warning("feed_replay_failed", {{"worker", spec_.name},
                                                  {"rank", std::int64_t{spec_.holder.rank}},
                                                  {"endpoint", spec_.replay},
                                                  {"attempts", number(attempts_)}});
    sequence_.replay_failed();
    return;
  }
  sequence_.replay_interrupted();
  asked_ = sequence_.wanted();
  const auto doubled =
      context_.options.replay_pause * (std::int64_t{1} << std::min<std::size_t>(attempts_ - 1, 16));
  ask_at_ = now + std::min<std::chrono::milliseconds>(doubled, kLongestPause);
}

void FeedReader::stop_replay() {
  if (!replay_) return;
  context_.readiness.remove(descriptor(*replay_), *this);
  replay_.reset();
}

bool FeedReader::work() {
  Message message;
  bool more = true;
  for (int i = 0; i < kRepliesAtOnce && more && replay_; ++i) {
    const auto outcome = message.receive(*replay_);
    more = outcome == Message::Outcome::Received;
    if (outcome == Message::Outcome::Failed) attempt_failed(Clock::now());
    if (!more) break;
    const auto reply = read_reply(message.frames());
    if (!reply) continue;
    if (reply->end()) {
      sequence_.replay_done();
    } else if (sequence_.replayed(reply->sequence, reply->payload)) {
      last_batch_ = Clock::now();
      reply_by_ = *last_batch_ + context_.options.replay_timeout;
    }
    if (sequence_.wanted() != asked_) break;
  }
  follow_up();
  show();
  return more && replay_.has_value();
}

void FeedReader::on_time() {
  const auto now = Clock::now();
  if (confirm_at_ && *confirm_at_ <= now) {
    confirm_at_.reset();
    sequence_.reconnected();
  }
  if (replay_ && std::min(reply_by_, end_by_) <= now) attempt_failed(now);
  follow_up();
  show();
}

}  // namespace baton::kvcache
