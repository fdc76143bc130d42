// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/framing.h"

#include <limits>

namespace baton::kvcache {
namespace {

constexpr std::size_t kNumberBytes = 8;
// Stands for "no batch": the end of a replay, and never the number of one.
constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> read_number(Bytes frame) {
  if (frame.size() != kNumberBytes) return std::nullopt;
  std::uint64_t number = 0;
  for (const std::byte byte : frame) number = number << 8U | std::to_integer<std::uint64_t>(byte);
  return number;
}

}  // namespace

std::optional<Framed> read_published(std::span<const Bytes> frames) {
  if (frames.size() != 3) return std::nullopt;
  const auto number = read_number(frames[1]);
  if (!number || *number == kNone) return std::nullopt;
  const std::string_view topic(reinterpret_cast<const char*>(frames[0].data()), frames[0].size());
  return Framed{.topic = topic, .sequence = *number, .payload = frames[2]};
}

std::optional<Reply> read_reply(std::span<const Bytes> frames) {
  constexpr std::size_t kMost = 4;  // delimiter, topic, number, payload
  if (frames.size() < 2 || frames.size() > kMost) return std::nullopt;
  const auto number = read_number(frames[frames.size() - 2]);
  if (!number) return std::nullopt;
  const Bytes payload = frames.back();
  if (*number == kNone && !payload.empty()) return std::nullopt;
  return Reply{.sequence = *number, .payload = payload};
}

std::array<std::byte, 8> replay_request(std::uint64_t from) {
  std::array<std::byte, kNumberBytes> bytes{};
  for (std::size_t i = 0; i < kNumberBytes; ++i)
    bytes[i] = static_cast<std::byte>(from >> (8 * (kNumberBytes - 1 - i)));
  return bytes;
}

}  // namespace baton::kvcache
