// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace baton::scheduling {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

// Role. Knows the first of its runners at any time, if time alone can change that: each match of
//   the tree has a time until which its winner stays ahead, and is played again only after it.
//   Joining, leaving and asking for the first cost O(log n).
// A runner has
//   std::size_t slot;                          // the tournament's own
//   double settle(double now);                 // brings it up to date; until when that holds
//   bool ahead_of(const Runner&, double now) const;
//   double overtaken_by(const Runner&, double now) const;  // when the other will be ahead of it
// Requires. `now` never goes back. A runner stays where it is in memory until it leaves.
template <class Runner>
class KineticTournament {
 public:
  std::size_t size() const { return size_; }

  void join(Runner& runner, double now) {
    if (size_ == leaves_) resize(std::max<std::size_t>(1, 2 * leaves_), now);
    runner.slot = size_++;
    place(runner, now);
  }

  void leave(Runner& runner, double now) {
    const std::size_t last = --size_;
    Runner& moved = *nodes_[leaves_ + last].best;
    vacate(last, now);
    if (&moved != &runner) {
      moved.slot = runner.slot;
      place(moved, now);
    }
    // Shrinks again after a crowd has gone.
    if (size_ <= leaves_ / 4) resize(leaves_ / 2 * (size_ == 0 ? 0 : 1), now);
  }

  // Something other than time has changed about the runner.
  void changed(Runner& runner, double now) { place(runner, now); }

  // Null if empty.
  Runner* best(double now) {
    if (size_ == 0) return nullptr;
    settle(1, now);
    return nodes_[1].best;
  }
  // Until when it is the best, as of the last call.
  double until() const { return size_ == 0 ? kForever : nodes_[1].until; }

 private:
  struct Node {
    Runner* best = nullptr;
    double until = kForever;
  };

  void place(Runner& runner, double now) {
    const std::size_t leaf = leaves_ + runner.slot;
    nodes_[leaf] = {&runner, runner.settle(now)};
    replay(leaf, now);
  }
  void vacate(std::size_t slot, double now) {
    nodes_[leaves_ + slot] = {};
    replay(leaves_ + slot, now);
  }
  void replay(std::size_t node, double now) {
    while (node > 1) {
      node /= 2;
      play(node, now);
    }
  }
  void play(std::size_t node, double now) {
    const Node& left = nodes_[2 * node];
    const Node& right = nodes_[2 * node + 1];
    if (!left.best || !right.best) {
      nodes_[node] = left.best ? left : right;
      return;
    }
    const bool left_wins = !right.best->ahead_of(*left.best, now);
    const Node& winner = left_wins ? left : right;
    const Node& loser = left_wins ? right : left;
    nodes_[node] = {winner.best, std::min({left.until, right.until,
                                           winner.best->overtaken_by(*loser.best, now)})};
  }
  void settle(std::size_t node, double now) {
    if (nodes_[node].until > now) return;
    if (node >= leaves_) {
      nodes_[node].until = nodes_[node].best->settle(now);
      return;
    }
    settle(2 * node, now);
    settle(2 * node + 1, now);
    play(node, now);
  }
  void resize(std::size_t leaves, double now) {
    std::vector<Node> nodes(2 * leaves);
    for (std::size_t slot = 0; slot < size_; ++slot) nodes[leaves + slot] = nodes_[leaves_ + slot];
    nodes_ = std::move(nodes);
    leaves_ = leaves;
    for (std::size_t node = leaves; node-- > 1;) play(node, now);
  }

  std::size_t size_ = 0;
  std::size_t leaves_ = 0;   // a power of two; that many nodes from there on are the runners'
  std::vector<Node> nodes_;  // the children of a node are at twice its place; 1 is the final
};

}  // namespace baton::scheduling
