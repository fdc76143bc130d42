// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/index.h"
#include "model/worker.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::kvcache {

// Why an event, or a block of one, was left out.
enum class Skipped : std::uint8_t {
  UnknownType,       // an event of a type that is not known
  Malformed,         // an event whose fields are not of the shape they should have
  TooLarge,          // more hashes or tokens than an engine would send
  UnknownMedium,     // a tier that is not known
  NotLocal,          // held by another
  Owned,             // belongs to a store of its own
  NotMainAttention,  // of a hybrid model's sliding windows, states and the like
  UnknownGroup,      // of a cache group that no store has explained
  BlockSize,         // blocks of another size than the worker's
  UnknownParent,     // follows a block that is not known
  UnknownBlock,      // says of a block that is not known that it is in another tier
  AmbiguousSalt,     // the salt of its predecessor is not known for certain
  NoRoom,            // the index is full
};
inline constexpr std::size_t kSkippedReasons = 13;
std::string_view to_string(Skipped reason);

// Results of a feed's events. Blocks, unless said otherwise.
struct FeedTally {
  std::uint64_t batches = 0;
  std::uint64_t malformed_batches = 0;
  std::uint64_t events = 0;
  std::uint64_t stored = 0;
  std::uint64_t removed = 0;
  std::uint64_t cleared = 0;                             // events
  std::array<std::uint64_t, kSkippedReasons> skipped{};  // events or blocks, by reason
};

// A feed's position: the number of the last applied batch, and its payload's hash, which
// distinguishes a restarted engine that counts from the beginning from a duplicate.
struct Position {
  std::uint64_t sequence = 0;
  std::uint64_t payload_hash = 0;
  bool operator==(const Position&) const = default;
};

enum class FeedState : std::uint8_t {
  Waiting,      // nothing has come yet
  Live,         // contiguous so far
  Unconfirmed,  // the connection broke, and nothing has come since that is of the same engine
  Replaying,    // missing batches are being asked for
  Gap,          // something was lost for good; later events are known
  Broken,       // its batches cannot be read
};
std::string_view to_string(FeedState state);

// The source of the events of one (worker, rank).
struct FeedSpec {
  Holder holder;
  std::string name;       // of the worker, for logs
  std::string authority;  // host:port of the worker; publishers that share a socket put it into
                          // their topic
  model::Engine engine = model::Engine::Vllm;
  std::string events;  // ZeroMQ endpoint of this very rank; with a wildcard for host it is bound
  std::string replay;  // empty: none
  std::string topic;   // prefix subscribed to
  std::optional<std::uint32_t> block_size;  // nothing: as the first event says
  std::optional<Position> resume;           // the position of the index
};

struct FeedStatus {
  Holder holder;
  FeedState state = FeedState::Waiting;
  std::optional<Position> position;
  std::optional<std::chrono::steady_clock::time_point> last_batch;  // when one came
  std::optional<std::chrono::duration<double>> lag;  // of it: from the engine's clock to its coming
  std::uint64_t gaps = 0;                            // found
  std::uint64_t lost = 0;                            // batches that could not be replayed
  std::uint64_t replayed = 0;                        // batches
  std::uint64_t duplicates = 0;                      // batches
  std::uint64_t restarts = 0;                        // of the engine, seen in its numbering
  std::uint64_t refusals = 0;       // attempts to connect that failed before the first that did not
  std::optional<BlockShape> shape;  // of its blocks, as its events have them
  // The index and the position suffice to go on: no event so far changes the meaning of later ones,
  // like those of salts and of a hybrid model's groups.
  bool resumable = true;
  FeedTally tally;
};

}  // namespace baton::kvcache
