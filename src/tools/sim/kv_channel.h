// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/pin_table.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <zmq.hpp>

namespace baton::sim {

// Role. One rank's numbered batches on the wire: published as they come, kept for subscribers that
//   missed some and request a replay.
// Confinement. One thread; time comes in as an argument.
// Lifetime. Owns its sockets; their context outlives it.
// Invariants. Every batch has the number after the one before, whatever becomes of it. Nothing
//   here waits for a peer.
class KvChannel {
 public:
  struct Settings {
    std::string topic = {};
    std::uint64_t first_sequence = 0;
    std::uint32_t buffer = 10000;
    std::uint32_t replay_frames = 4;
  };
  // Treatment of a batch on its way.
  struct Delivery {
    unsigned copies = 1;  // none: it gets lost
    bool keep = true;     // for a replay
    bool garbage = false;
    std::chrono::nanoseconds delay{0};
  };

  // `replay` is a ROUTER, or no socket at all.
  KvChannel(zmq::socket_t feed, std::optional<zmq::socket_t> replay, Settings settings);

  void send(std::string payload, const Delivery& delivery, TimePoint now);
  // Sends due batches and answers replay requests.
  void serve(TimePoint now);
  // Like a new process: numbers from the first, nothing kept.
  void restart();

  std::uint64_t next_sequence() const { return next_sequence_; }

 private:
  struct Batch {
    std::uint64_t sequence;
    std::string payload;
  };
  struct Delayed {
    Batch batch;
    unsigned copies;
    TimePoint due;
  };

  void publish(const Batch& batch, unsigned copies);
  void answer_replays();
  void replay(const zmq::message_t& peer, std::uint64_t from);
  void reply(const zmq::message_t& peer, const std::string& topic, std::uint64_t sequence,
             const std::string& payload);

  zmq::socket_t feed_;
  std::optional<zmq::socket_t> replay_;
  Settings settings_;
  std::uint64_t next_sequence_;
  std::deque<Batch> kept_;
  std::deque<Delayed> delayed_;  // in the order of their numbers
};

}  // namespace baton::sim
