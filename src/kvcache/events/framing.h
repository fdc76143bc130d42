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

// What an engine publishes: topic, number, payload. Nothing where it is anything else.
std::optional<Framed> read_published(std::span<const Bytes> frames);

// What a replay socket answers. There are two framings, with and without a topic, so only the last
// two frames count: number and payload; an empty payload is the end. Nothing where it is anything
// else.
struct Reply {
  std::uint64_t sequence = 0;
  Bytes payload;
  bool end() const { return payload.empty(); }
};
std::optional<Reply> read_reply(std::span<const Bytes> frames);

// What a replay socket is asked, behind an empty frame: the first number that is wanted.
std::array<std::byte, 8> replay_request(std::uint64_t from);

}  // namespace baton::kvcache
