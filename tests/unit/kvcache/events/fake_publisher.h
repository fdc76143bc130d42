// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <zmq.hpp>

namespace baton::test {

// A batch as vLLM encodes it: blocks of one token each, each the first of a prompt.
struct Batch {
  std::vector<std::uint64_t> stored = {};
  std::vector<std::uint64_t> removed = {};
  std::uint8_t rank = 0;
};
std::string encode(const Batch& batch, double timestamp);
std::string number_frame(std::uint64_t number);

// Role. An engine's publisher and its replay socket, which does as it is told, also what engines
//   do not do.
// Confinement. The test's thread; replays are answered by a thread of its own.
class FakePublisher {
 public:
  enum class Framing : std::uint8_t { Old, New };
  enum class Replay : std::uint8_t { Normal, Silent, Rubbish, Endless };

  // Binds to free ports of the loopback, or connects to that endpoint.
  explicit FakePublisher(Framing framing = Framing::New, std::string connect_to = {});
  ~FakePublisher();
  FakePublisher(const FakePublisher&) = delete;
  FakePublisher& operator=(const FakePublisher&) = delete;

  const std::string& events() const { return events_; }
  const std::string& replay() const { return replay_; }
  void set_replay(Replay replay) { behaviour_ = replay; }
  void set_topic(std::string topic) { topic_ = std::move(topic); }
  void set_next(std::uint64_t number);
  void keep(std::size_t batches);  // that can be repeated
  std::uint64_t requests() const { return requests_; }

  // Waits until somebody has subscribed; false: nobody has.
  bool await_subscriber();
  // The block table follows, whether or not the batch arrives.
  void publish(const Batch& batch) { send_batch(batch, true); }
  void lose(const Batch& batch) { send_batch(batch, false); }
  void publish_last_again();
  void publish_frames(const std::vector<std::string>& frames);
  // Another process with the same addresses: counts from the beginning, and knows of nothing.
  void restart();
  // Sends what it has yet to send, and is gone.
  void end();

  const std::set<std::uint64_t>& table() const { return table_; }

 private:
  void send_batch(const Batch& batch, bool arrives);
  void open();
  void close();
  void answer();
  void answer(zmq::socket_t& socket, const std::string& identity, std::uint64_t from);

  Framing framing_;
  std::string connect_to_;
  std::string events_ = "tcp://127.0.0.1:*";
  std::string replay_ = "tcp://127.0.0.1:*";
  std::string topic_;
  zmq::context_t context_;
  std::optional<zmq::socket_t> publisher_;
  std::set<std::uint64_t> table_;
  std::uint64_t started_ = 0;  // how often; makes its payloads its own

  std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::size_t kept_ = 1'000'000;
  std::deque<std::pair<std::uint64_t, std::string>> ring_;

  std::atomic<Replay> behaviour_ = Replay::Normal;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<bool> stopping_ = false;
  std::optional<zmq::socket_t> router_;  // of the thread while it runs
  std::thread thread_;
};

}  // namespace baton::test
