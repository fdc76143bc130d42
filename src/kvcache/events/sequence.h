// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/feed.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace baton::kvcache {

// Role. Puts one feed's batches into order: decides which to apply, which are repetitions, which
//   are missing and must be asked for, and when all applied ones no longer count, because the
//   engine was restarted or a lost batch may have removed blocks. No I/O.
// Confinement. One thread at a time.
// Lifetime. The sink outlives it.
// Invariants. The batches applied since the sink last forgot are contiguous. Held batches are
//   bounded in number and bytes. A replay ends with a decision: no batch is held unless one is
//   wanted.
class Sequence {
 public:
  enum class Origin : std::uint8_t { Live, Held, Replay };  // Held: live, while a replay ran

  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void apply(std::span<const std::byte> payload, Origin origin) = 0;
    // Nothing that was applied counts any more.
    virtual void forget() = 0;
  };

  struct Options {
    bool replayable = false;  // a replay can be asked for
    // Limits on held batches; one batch may always be held.
    std::size_t held_batches = 4'096;
    std::size_t held_bytes = std::size_t{64} << 20U;
  };

  // The batches to ask for. Another round is another question: answers to an earlier one do not
  // count.
  struct Wanted {
    std::uint64_t from = 0;
    std::uint64_t round = 0;
    bool operator==(const Wanted&) const = default;
  };

  struct Counts {
    std::uint64_t gaps = 0;
    std::uint64_t lost = 0;
    std::uint64_t replayed = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t restarts = 0;
    bool operator==(const Counts&) const = default;
  };

  Sequence(Options options, std::optional<Position> resume, Sink& sink);

  // A batch was published.
  void live(std::uint64_t sequence, std::span<const std::byte> payload);
  // The connection is gone, and mostly all that came over it is here: a reader that is far behind
  // hears of the loss together with the new connection. Without replay, the applied batches are in
  // doubt from now on until the next batch follows them, repeats one or shows another engine.
  void disconnected();
  // The connection is new: another engine may be at its other end, and batches may be missing.
  // Without replay that is a doubt, too, unless disconnected() already said so.
  void reconnected();

  std::optional<Wanted> wanted() const;
  // A batch of the replay; false if it is of no use.
  bool replayed(std::uint64_t sequence, std::span<const std::byte> payload);
  // It was answered to the end.
  void replay_done();
  // It broke off, and is asked again from its last batch.
  void replay_interrupted();
  // No answer: missing batches are lost, and unconfirmed ones no longer count.
  void replay_failed();

  FeedState state() const;  // never Broken
  const std::optional<Position>& position() const { return position_; }
  const Counts& counts() const { return counts_; }

 private:
  struct Held {
    std::uint64_t hash = 0;
    std::vector<std::byte> payload;
  };
  struct Fetch {
    Wanted wanted;
    std::optional<Position> begun_at;         // where it began: has to be repeated first
    std::optional<std::uint64_t> last_reply;  // nothing: unanswered
    bool confirmed = false;                   // it was answered before it was interrupted
  };

  void fetch();
  void hold(Position batch, std::span<const std::byte> payload);
  void take(Position batch, std::span<const std::byte> payload, Origin origin);
  void take_first_held();
  // Applies held batches that are contiguous; asks for missing ones, if that may help.
  void conclude(bool may_ask);
  // The engine is another one, of which nothing is known, or no more than that batch.
  void restart();
  void restart_with(Position batch, std::span<const std::byte> payload);
  void drop_held();
  // Loses the batches between the position and that one, except the held ones.
  void lose_until(std::optional<std::uint64_t> sequence);
  void lose(std::uint64_t batches);
  void remember(Position batch, Origin origin);
  bool repeats(Position batch) const;

  Options options_;
  Sink& sink_;
  std::optional<Position> position_;
  // Applied last, to distinguish repetitions from a restart. In their order.
  std::deque<Position> recent_;
  std::optional<Fetch> fetch_;
  std::map<std::uint64_t, Held> held_;
  std::size_t held_bytes_ = 0;
  std::optional<std::uint64_t> highest_;  // seen while a replay ran, held or not
  bool overflowed_ = false;
  bool unconfirmed_ = false;  // nothing has shown that the engine is the one of position_ still
  bool broken_ = false;       // the connection, without a new one yet; not with a replay
  bool incomplete_ = false;   // since something was lost
  unsigned stalled_ = 0;      // replays in a row that brought nothing new
  std::uint64_t rounds_ = 0;
  Counts counts_;
};

}  // namespace baton::kvcache
