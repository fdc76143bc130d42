// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/kv_channel.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::sim {
namespace {

constexpr std::uint64_t kEndOfReplay = ~std::uint64_t{0};
// A batch of three that breaks off, with a byte that msgpack never uses.
constexpr std::string_view kGarbage = "\x93\xc1garbage";

std::array<char, 8> big_endian(std::uint64_t value) {
  std::array<char, 8> out{};
  for (unsigned i = 0; i < 8; ++i) out[i] = static_cast<char>(value >> (56 - 8 * i));
  return out;
}

std::uint64_t read_big_endian(const zmq::message_t& frame) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    value = (value << 8U) | frame.data<std::uint8_t>()[i];
  }
  return value;
}

void send_frame(zmq::socket_t& socket, std::string_view bytes, bool more) {
  const auto flags =
      more ? zmq::send_flags::sndmore | zmq::send_flags::dontwait : zmq::send_flags::dontwait;
  socket.send(zmq::buffer(bytes), flags);
}

std::string_view text_of(const zmq::message_t& frame) { return {frame.data<char>(), frame.size()}; }

}  // namespace

KvChannel::KvChannel(zmq::socket_t feed, std::optional<zmq::socket_t> replay, Settings settings)
    : feed_(std::move(feed)),
      replay_(std::move(replay)),
      settings_(std::move(settings)),
      next_sequence_(settings_.first_sequence) {}

void KvChannel::send(std::string payload, const Delivery& delivery, TimePoint now) {
  serve(now);  // like the engines: earlier replay requests are answered without this batch
  Batch batch{next_sequence_++, std::move(payload)};
  if (delivery.keep && replay_ && settings_.buffer > 0) {
    if (kept_.size() == settings_.buffer) kept_.pop_front();
    kept_.push_back(batch);
  }
  if (delivery.garbage) batch.payload = kGarbage;
  const bool in_order = delayed_.empty() && delivery.delay.count() == 0;
  if (in_order) return publish(batch, delivery.copies);
  TimePoint due = now + delivery.delay;
  if (!delayed_.empty()) due = std::max(due, delayed_.back().due);
  delayed_.push_back({std::move(batch), delivery.copies, due});
}

void KvChannel::serve(TimePoint now) {
  while (!delayed_.empty() && delayed_.front().due <= now) {
    publish(delayed_.front().batch, delayed_.front().copies);
    delayed_.pop_front();
  }
  if (replay_) answer_replays();
}

void KvChannel::restart() {
  next_sequence_ = settings_.first_sequence;
  kept_.clear();
  delayed_.clear();
}

void KvChannel::publish(const Batch& batch, unsigned copies) {
  const auto sequence = big_endian(batch.sequence);
  for (; copies > 0; --copies) {
    send_frame(feed_, settings_.topic, true);
    send_frame(feed_, {sequence.data(), sequence.size()}, true);
    send_frame(feed_, batch.payload, false);
  }
}

// A request has the peer's name, an empty frame and the first number wanted; anything else gets no
// answer.
void KvChannel::answer_replays() {
  std::vector<zmq::message_t> frames;
  zmq::message_t frame;
  while (replay_->recv(frame, zmq::recv_flags::dontwait)) {
    const bool more = frame.more();
    frames.push_back(std::move(frame));
    if (more) continue;
    if (frames.size() == 3 && frames[1].size() == 0 && frames[2].size() == 8) {
      replay(frames[0], read_big_endian(frames[2]));
    }
    frames.clear();
  }
}

void KvChannel::replay(const zmq::message_t& peer, std::uint64_t from) {
  for (const Batch& batch : kept_) {
    if (batch.sequence >= from) reply(peer, settings_.topic, batch.sequence, batch.payload);
  }
  reply(peer, {}, kEndOfReplay, {});
}

void KvChannel::reply(const zmq::message_t& peer, const std::string& topic, std::uint64_t sequence,
                      const std::string& payload) {
  const auto number = big_endian(sequence);
  send_frame(*replay_, text_of(peer), true);
  send_frame(*replay_, {}, true);
  if (settings_.replay_frames == 4) send_frame(*replay_, topic, true);
  send_frame(*replay_, {number.data(), number.size()}, true);
  send_frame(*replay_, payload, false);
}

}  // namespace baton::sim
