// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

namespace baton::scheduling {

// The work of some requests. Shares are of tokens, waits are of seconds: a token of a prompt that
// is nearly all cached takes longer than one of a cold prompt.
struct Work {
  double tokens = 0;
  double seconds = 0;

  Work& operator+=(const Work& other) {
    tokens += other.tokens;
    seconds += other.seconds;
    return *this;
  }
  Work& operator-=(const Work& other) {
    tokens -= other.tokens;
    seconds -= other.seconds;
    return *this;
  }
  // The part of it that has at most so many tokens.
  Work up_to(double most) const {
    if (most >= tokens) return *this;
    return {.tokens = most, .seconds = seconds * most / tokens};
  }
  bool operator==(const Work&) const = default;
};

}  // namespace baton::scheduling
