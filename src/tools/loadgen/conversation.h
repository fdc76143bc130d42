// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::loadgen {

// A stretch of a prompt. Made-up ones are a function of their key: equal keys give equal tokens, and
// the shorter of two is the beginning of the longer.
struct Piece {
  enum class Speaker { System, User, Assistant };
  Speaker speaker = Speaker::User;
  std::uint64_t key = 0;
  std::uint32_t tokens = 0;
  // An endpoint's real answer: it replaces the text made from the key.
  std::optional<std::string> text = std::nullopt;
  std::vector<std::uint32_t> ids = {};
};

// One request of a conversation: what is said after all that was said before.
struct Turn {
  std::vector<Piece> says;
  std::uint32_t output_tokens = 0;
  std::chrono::microseconds think{0};  // waited before it is sent
};

// The requests of one user, in sequence. Most workloads have a single turn.
struct Conversation {
  std::uint64_t number = 0;
  std::vector<Turn> turns;
};

}  // namespace baton::loadgen
