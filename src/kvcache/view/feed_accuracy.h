// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>

namespace baton::kvcache {

// Role. Compares the cached part of a prompt by a worker's feed with the engine's own report, and
//   decides whether the feed is right.
// Confinement. One thread at a time.
// Invariants. Old comparisons count less with each new one, so a feed that has become right is
//   believed again.
class FeedAccuracy {
 public:
  struct Sample {
    // The feed's state before the prompt was sent and when its answer came: blocks may come and go
    // meanwhile, so anything between is right. In tokens.
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    std::uint64_t reported = 0;
  };
  void add(const Sample& sample);

  bool believed() const { return believed_; }
  // The recent share of wrong tokens among those that were or should have been cached: 0 to 1.
  double error() const;
  std::uint64_t samples() const { return samples_; }  // that said something

 private:
  double wrong_ = 0;
  double all_ = 0;
  double weight_ = 0;  // of the comparisons that count still
  std::uint64_t samples_ = 0;
  bool believed_ = true;
};

}  // namespace baton::kvcache
