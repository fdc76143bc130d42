// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/kvcache/events/fake_publisher.h"

#include "support/msgpack_encoder.h"

#include <chrono>
#include <stdexcept>
#include <tuple>

namespace baton::test {
namespace {

constexpr std::chrono::seconds kDeadline{10};

}  // namespace

std::string encode(const Batch& batch, double timestamp) {
  baton::test::MsgpackEncoder out;
  out.array(3).number(timestamp).array(batch.stored.size() + (batch.removed.empty() ? 0 : 1));
  for (const std::uint64_t hash : batch.stored) {
    out.array(6).text("BlockStored").array(1).unsigned_integer(hash).nil();
    out.array(1).unsigned_integer(hash & 0xffff).unsigned_integer(1).nil();
  }
  if (!batch.removed.empty()) {
    out.array(2).text("BlockRemoved").array(batch.removed.size());
    for (const std::uint64_t hash : batch.removed) out.unsigned_integer(hash);
  }
  return out.unsigned_integer(batch.rank).encoded();
}

std::string number_frame(std::uint64_t number) {
  std::string out;
  for (int i = 7; i >= 0; --i) out += static_cast<char>(number >> (8 * i));
  return out;
}

FakePublisher::FakePublisher(Framing framing, std::string connect_to)
    : framing_(framing), connect_to_(std::move(connect_to)) {
  open();
}

FakePublisher::~FakePublisher() {
  if (publisher_) close();
}

void FakePublisher::end() {
  publisher_->set(zmq::sockopt::linger, static_cast<int>(kDeadline / std::chrono::milliseconds(1)));
  close();
  context_.close();  // waits for what is not sent yet
}

void FakePublisher::open() {
  // The address of one that was just closed is free a little later.
  const auto bind = [](zmq::socket_t& socket, std::string& endpoint) {
    const auto until = std::chrono::steady_clock::now() + kDeadline;
    while (zmq_bind(socket.handle(), endpoint.c_str()) != 0)
      if (std::chrono::steady_clock::now() > until) throw std::runtime_error("cannot bind");
    endpoint = socket.get(zmq::sockopt::last_endpoint);
  };
  publisher_.emplace(context_, zmq::socket_type::xpub);
  publisher_->set(zmq::sockopt::linger, connect_to_.empty() ? 0 : 1'000);
  publisher_->set(zmq::sockopt::sndhwm, 0);  // what gets lost is for the test to say
  publisher_->set(zmq::sockopt::xpub_verboser, 1);
  publisher_->set(zmq::sockopt::rcvtimeo,
                  static_cast<int>(kDeadline / std::chrono::milliseconds(1)));
  if (connect_to_.empty()) {
    bind(*publisher_, events_);
  } else {
    publisher_->connect(connect_to_);
  }
  router_.emplace(context_, zmq::socket_type::router);
  router_->set(zmq::sockopt::linger, 0);
  router_->set(zmq::sockopt::rcvtimeo, 5);
  router_->set(zmq::sockopt::sndhwm, 0);
  bind(*router_, replay_);
  stopping_ = false;
  thread_ = std::thread([this] { answer(); });
}

void FakePublisher::close() {
  stopping_ = true;
  thread_.join();
  router_.reset();
  publisher_.reset();
}

void FakePublisher::restart() {
  close();
  ++started_;
  next_ = 0;
  ring_.clear();
  table_.clear();
  open();
}

void FakePublisher::set_next(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  next_ = number;
}

void FakePublisher::keep(std::size_t batches) {
  const std::lock_guard lock(mutex_);
  kept_ = batches;
  while (ring_.size() > kept_) ring_.pop_front();
}

bool FakePublisher::await_subscriber() {
  zmq::message_t message;
  while (publisher_->recv(message))
    if (message.size() > 0 && *message.data<char>() == 1) return true;
  return false;
}

void FakePublisher::send_batch(const Batch& batch, bool arrives) {
  for (const std::uint64_t hash : batch.stored) table_.insert(hash);
  for (const std::uint64_t hash : batch.removed) table_.erase(hash);
  std::uint64_t number = 0;
  std::string payload;
  {
    const std::lock_guard lock(mutex_);
    number = next_++;
    // No two batches are the same, as the clock sees to for engines.
    payload = encode(
        batch, 1'755'000'000.0 + static_cast<double>(started_) * 1e6 + static_cast<double>(number));
    ring_.emplace_back(number, payload);
    while (ring_.size() > kept_) ring_.pop_front();
  }
  if (arrives) publish_frames({topic_, number_frame(number), payload});
}

void FakePublisher::publish_last_again() {
  std::string payload;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    std::tie(number, payload) = ring_.back();
  }
  publish_frames({topic_, number_frame(number), payload});
}

void FakePublisher::publish_frames(const std::vector<std::string>& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i)
    publisher_->send(zmq::buffer(frames[i]),
                     i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
}

void FakePublisher::answer() {
  while (!stopping_) {
    zmq::message_t identity;
    if (!router_->recv(identity)) continue;
    zmq::message_t frame;
    std::vector<std::string> rest;
    do {
      if (!router_->recv(frame)) break;
      rest.push_back(frame.to_string());
    } while (frame.more());
    if (rest.size() != 2 || !rest[0].empty() || rest[1].size() != 8) continue;
    ++requests_;
    std::uint64_t from = 0;
    for (const char byte : rest[1]) from = from << 8U | static_cast<unsigned char>(byte);
    answer(*router_, identity.to_string(), from);
  }
}

void FakePublisher::answer(zmq::socket_t& socket, const std::string& identity, std::uint64_t from) {
  const auto send = [&](std::uint64_t number, const std::string& payload) {
    socket.send(zmq::buffer(identity), zmq::send_flags::sndmore);
    socket.send(zmq::message_t(), zmq::send_flags::sndmore);
    if (framing_ == Framing::New) socket.send(zmq::message_t(), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(number_frame(number)), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(payload), zmq::send_flags::none);
  };
  const Replay behaviour = behaviour_;
  if (behaviour == Replay::Silent) return;
  if (behaviour == Replay::Rubbish) {
    for (int i = 0; i < 100; ++i) {
      socket.send(zmq::buffer(identity), zmq::send_flags::sndmore);
      for (int j = 0; j < i % 9; ++j)
        socket.send(zmq::buffer(std::string(static_cast<std::size_t>(i), 'x')),
                    zmq::send_flags::sndmore);
      socket.send(zmq::buffer(std::string("rubbish")), zmq::send_flags::none);
    }
    return;
  }
  std::deque<std::pair<std::uint64_t, std::string>> ring;
  {
    const std::lock_guard lock(mutex_);
    ring = ring_;
  }
  // Without end and without rising: a server that is caught in a loop.
  if (behaviour == Replay::Endless) {
    while (!stopping_ && behaviour_ == Replay::Endless && !ring.empty())
      for (const auto& [number, payload] : ring) send(number, payload);
    return;
  }
  for (const auto& [number, payload] : ring)
    if (number >= from) send(number, payload);
  send(~std::uint64_t{0}, "");
}

}  // namespace baton::test
