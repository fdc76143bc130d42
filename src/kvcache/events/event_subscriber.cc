// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/event_subscriber.h"

#include "kvcache/events/applier.h"
#include "kvcache/events/recipient.h"
#include "kvcache/events/sockets.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace baton::kvcache {
namespace {

constexpr int kMessagesAtOnce = 64;
constexpr std::size_t kTopics = 16'384;
constexpr std::size_t kLongestTopic = 256;
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestReconnectPause{5'000};
// By then ZeroMQ has said that it connects again, if it does.
constexpr std::chrono::milliseconds kGivenUp{1'000};

}  // namespace

EventSubscriber::EventSubscriber(FeedContext& context, std::string endpoint, std::string name)
    : context_(context),
      endpoint_(std::move(endpoint)),
      name_(std::move(name)),
      bound_(is_bound(endpoint_)),
      pause_(kFirstPause) {
  open();
}

EventSubscriber::~EventSubscriber() {
  close();
  context_.readiness.set_time(*this, std::nullopt);
}

void EventSubscriber::open() {
  connected_ = false;
  if (try_open()) {
    for (FeedReader* reader : readers_) begin(*reader);
    return;
  }
  close();
  context_.readiness.set_time(*this, std::chrono::steady_clock::now() + pause_);
  pause_ = std::min(pause_ * 2, kLongestReconnectPause);
}

bool EventSubscriber::try_open() {
  // The name of a monitor that was just closed is not free at once.
  const std::string watched = fmt::format("inproc://{}-{}", name_, ++opened_);
  const auto watch = [this](zmq::socket_t& socket) {
    const bool added = context_.readiness.add(descriptor(socket), *this);
    if (!added) failed("too many descriptors are watched");
    return added;
  };
  auto socket = make_subscriber(context_.zmq, endpoint_, watched);
  if (!socket) {
    failed(socket.error().message());
    return false;
  }
  socket_ = *std::move(socket);
  if (bound_) return watch(*socket_);
  auto monitor = make_monitor(context_.zmq, watched);
  if (!monitor) {
    failed(monitor.error().message());
    return false;
  }
  monitor_ = *std::move(monitor);
  return watch(*monitor_) && watch(*socket_);
}

void EventSubscriber::failed(std::string_view error) {
  if (std::exchange(failure_said_, true)) return;
  context_.log.error("feed_failed", {{"endpoint", endpoint_}, {"error", error}});
}

void EventSubscriber::close() {
  if (socket_ && !bound_) stop_monitor(*socket_);
  for (auto* socket : {&socket_, &monitor_}) {
    if (!*socket) continue;
    context_.readiness.remove(descriptor(**socket), *this);
    socket->reset();
  }
}

void EventSubscriber::add(FeedReader& reader) {
  readers_.push_back(&reader);
  meant_.clear();
  if (socket_) begin(reader);
}

void EventSubscriber::begin(FeedReader& reader) {
  if (!subscribe(*socket_, reader.spec().topic)) {
    failed("ZeroMQ refuses the subscription");
    context_.readiness.set_time(*this, std::chrono::steady_clock::now() + kLongestReconnectPause);
    return;
  }
  context_.readiness.make_ready(*this);
  reader.opened(address_of(*socket_), bound_);
  // A peer that connects to this socket is not known before it sends.
  if (bound_ || connected_) reader.connected();
  reader.show();
}

void EventSubscriber::remove(FeedReader& reader) {
  std::erase(readers_, &reader);
  meant_.clear();
  if (!socket_) return;
  unsubscribe(*socket_, reader.spec().topic);
  context_.readiness.make_ready(*this);
}

void EventSubscriber::on_time() {
  if (socket_) failed("the connection broke by what came over it: is it a ZeroMQ publisher?");
  close();
  open();
}

void EventSubscriber::heed_connection() {
  const ConnectionNews news = read_monitor(*monitor_);
  if (news.given_up) {
    std::optional<std::chrono::steady_clock::time_point> reopen;
    if (*news.given_up) reopen = std::chrono::steady_clock::now() + kGivenUp;
    context_.readiness.set_time(*this, reopen);
  }
  if (news.made) {
    connected_ = true;
    failure_said_ = false;
    pause_ = kFirstPause;
  }
  lost_ = lost_ || news.lost;
  if (news.refused > 0 && !connected_) {
    for (FeedReader* reader : readers_) {
      reader->refused(news.refused);
      reader->show();
    }
  }
  if (!news.made) return;
  report_lost();
  for (FeedReader* reader : readers_) {
    reader->connected();
    reader->show();
  }
}

void EventSubscriber::report_lost() {
  if (!std::exchange(lost_, false)) return;
  for (FeedReader* reader : readers_) {
    reader->disconnected();
    reader->show();
  }
}

bool EventSubscriber::work() {
  if (!socket_) return false;
  // The order matters: first new connections, then their messages, then lost connections.
  if (monitor_) heed_connection();
  Message message;
  bool more = true;
  for (int i = 0; i < kMessagesAtOnce && more; ++i) {
    more = message.receive(*socket_) == Message::Outcome::Received;
    if (more) receive(message);
  }
  if (!more) report_lost();
  for (FeedReader* reader : touched_) reader->show();
  touched_.clear();
  return more;
}

void EventSubscriber::receive(const Message& message) {
  const auto batch = read_published(message.frames());
  if (!batch) {
    if (readers_.size() != 1) return unroutable("");
    readers_.front()->garbled();
    touched_.push_back(readers_.front());
    return;
  }
  const auto readers = recipients(*batch);
  if (readers.empty()) return unroutable(batch->topic);
  for (FeedReader* reader : readers) {
    reader->published(*batch);
    if (std::ranges::find(touched_, reader) == touched_.end()) touched_.push_back(reader);
  }
}

// Several of one rank are meant together: each model of a server is a worker of its own, and one
// that leaves is there for a while beside the one that replaces it.
std::vector<FeedReader*> EventSubscriber::recipients(const Framed& batch) {
  std::vector<FeedReader*> readers = meant(batch.topic);
  if (readers.size() <= 1) return readers;
  const auto head = read_batch_head(batch.payload);
  if (head && head->rank) {
    std::erase_if(readers, [&](const FeedReader* reader) {
      return reader->spec().holder.rank != *head->rank;
    });
  } else if (bound_) {
    return {};
  }
  const auto other = [&](const FeedReader* reader) {
    return reader->spec().authority != readers.front()->spec().authority;
  };
  return std::ranges::any_of(readers, other) ? std::vector<FeedReader*>{} : readers;
}

const std::vector<FeedReader*>& EventSubscriber::meant(std::string_view topic) {
  // A publisher that we connected to is known.
  if (!bound_ && readers_.size() == 1) return readers_;
  // No engine has such a topic, and strangers' topics are not remembered.
  static const std::vector<FeedReader*> kNone;
  if (topic.size() > kLongestTopic) return kNone;
  std::string key(topic);
  const auto known = meant_.find(key);
  if (known != meant_.end()) return known->second;
  if (meant_.size() >= kTopics) meant_.clear();

  std::vector<const FeedSpec*> specs;
  specs.reserve(readers_.size());
  for (const FeedReader* reader : readers_) specs.push_back(&reader->spec());
  std::vector<FeedReader*> found;
  for (const FeedSpec* spec : meant_by_topic(topic, specs))
    found.push_back(
        *std::ranges::find(readers_, spec, [](auto* reader) { return &reader->spec(); }));
  return meant_.emplace(std::move(key), std::move(found)).first->second;
}

void EventSubscriber::unroutable(std::string_view topic) {
  ++unroutable_;
  // The first, the second, the fourth …
  if (!std::has_single_bit(unroutable_)) return;
  context_.log.warning("feed_unroutable", {{"endpoint", endpoint_},
                                           {"topic", topic.substr(0, kLongestTopic)},
                                           {"count", static_cast<std::int64_t>(unroutable_)}});
}

}  // namespace baton::kvcache
