// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/feed_reader.h"
#include "kvcache/events/framing.h"
#include "kvcache/events/readiness.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include <zmq.hpp>

namespace baton::kvcache {

// Role. One subscribing socket, and the feeds that come through it: one worker's if it connects,
//   those of all that connect to it if it is bound.
// Confinement. The feed's thread.
// Lifetime. The context outlives it; readers are removed before they end.
class EventSubscriber final : public Source {
 public:
  // `name`: unique among the subscribers of the context.
  EventSubscriber(FeedContext& context, std::string endpoint, std::string name);
  ~EventSubscriber() override;
  EventSubscriber(const EventSubscriber&) = delete;
  EventSubscriber& operator=(const EventSubscriber&) = delete;

  void add(FeedReader& reader);
  void remove(FeedReader& reader);
  bool empty() const { return readers_.empty(); }

  bool work() override;
  void on_time() override;  // reopens the socket

 private:
  void open();
  bool try_open();
  void close();
  void heed_connection();
  void report_lost();
  void failed(std::string_view error);
  void begin(FeedReader& reader);
  void receive(const Message& message);
  std::vector<FeedReader*> recipients(const Framed& batch);
  const std::vector<FeedReader*>& meant(std::string_view topic);
  void unroutable(std::string_view topic);

  FeedContext& context_;
  const std::string endpoint_;
  const std::string name_;
  const bool bound_;
  std::optional<zmq::socket_t> socket_;
  std::optional<zmq::socket_t> monitor_;
  std::vector<FeedReader*> readers_;
  std::unordered_map<std::string, std::vector<FeedReader*>> meant_;  // by topic, of those seen
  std::vector<FeedReader*> touched_;
  bool connected_ = false;    // once, since it was opened
  bool lost_ = false;         // the connection; the readers are not notified yet
  std::uint64_t opened_ = 0;  // times
  bool failure_said_ = false;
  std::uint64_t unroutable_ = 0;  // messages
  std::chrono::milliseconds pause_;
};

}  // namespace baton::kvcache
