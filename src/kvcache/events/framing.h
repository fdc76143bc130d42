// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace baton::kvcache {

using Bytes = std::span<const std::byte>;

// A batch as it travels.
struct Framed {
  std::string_view topic;
  std::uint64_t sequence = 0;
  Bytes payload;
};

// Reads an engine's published frames: topic, number, payload. Nothing for any others.
std::optional<Framed> read_published(std::span<const Bytes> frames);

// An answer of a replay socket. There are two framings, with and without a topic, so only the last
// two frames count: number and payload; an empty payload is the end. Nothing for any others.
struct Reply {
  std::uint64_t sequence = 0;
  Bytes payload;
  bool end() const { return payload.empty(); }
};
std::optional<Reply> read_reply(std::span<const Bytes> frames);

// The request to a replay socket, sent after an empty frame: the first number that is wanted.
std::array<std::byte, 8> replay_request(std::uint64_t from);

}  // namespace baton::kvcache
