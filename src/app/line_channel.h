// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::app {

// Role. One end of a stream socket between two processes that send each other short lines. Never
//   waits.
// Confinement. One thread.
// Lifetime. Closes the descriptor at its end.
class LineChannel {
 public:
  explicit LineChannel(int descriptor) : descriptor_(descriptor) {}
  ~LineChannel();
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;

  int descriptor() const { return descriptor_; }
  // False where the other end is closed, or does not read.
  bool send(std::string_view line);
  // The whole lines that have come since the last call.
  std::vector<std::string> receive();
  // The other end is closed, or sent something that is no line; found by receive().
  bool ended() const { return ended_; }

 private:
  int descriptor_;
  std::string begun_;  // a line without its end
  bool ended_ = false;
};

}  // namespace baton::app
