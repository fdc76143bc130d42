// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/bpe_merge.h"

#include <algorithm>
#include <functional>

namespace baton::tokenizer {
namespace {

// Up to here, looking through all pairs for the best one is cheaper than keeping a queue.
constexpr std::size_t kShort = 48;
constexpr std::uint32_t kNowhere = 0xFFFF'FFFF;

void merge_short(const MergeTable& table, Workspace& workspace) {
  TokenId* const symbols = workspace.symbols.data();
  Merge* const merges = workspace.merges.data();
  std::size_t pairs = workspace.symbols.size() - 1;
  while (pairs > 0) {
    std::size_t best = 0;
    for (std::size_t at = 1; at < pairs; ++at) {
      if (merges[at].rank < merges[best].rank) best = at;
    }
    if (merges[best].rank == Merge::kNever) break;
    symbols[best] = merges[best].id;
    // Prefetching waits once for all cache misses, not once for each.
    if (best > 0) table.prefetch(symbols[best - 1], symbols[best]);
    if (best + 1 < pairs) table.prefetch(symbols[best], symbols[best + 2]);
    std::copy(symbols + best + 2, symbols + pairs + 1, symbols + best + 1);
    if (best + 1 < pairs) {
      std::copy(merges + best + 2, merges + pairs, merges + best + 1);
      merges[best] = table.find(symbols[best], symbols[best + 1]);
    }
    if (best > 0) merges[best - 1] = table.find(symbols[best - 1], symbols[best]);
    --pairs;
  }
  workspace.symbols.resize(pairs + 1);
}

// A queue of (rank, place), and the symbols as a linked list. An entry of the queue is out of date
// when the pair at its place has another rank by now: a pair only ever grows, so it never gets an
// earlier rank of the same place back.
void merge_long(const MergeTable& table, Workspace& workspace) {
  std::vector<TokenId>& symbols = workspace.symbols;
  std::vector<Merge>& merges = workspace.merges;
  std::vector<std::uint32_t>& next = workspace.next;
  std::vector<std::uint32_t>& previous = workspace.previous;
  std::vector<std::uint64_t>& queue = workspace.queue;
  const auto count = static_cast<std::uint32_t>(symbols.size());
  next.resize(count);
  previous.resize(count);
  queue.clear();
  for (std::uint32_t at = 0; at < count; ++at) {
    next[at] = at + 1 < count ? at + 1 : kNowhere;
    previous[at] = at > 0 ? at - 1 : kNowhere;
    if (at + 1 < count && merges[at].rank != Merge::kNever) {
      queue.push_back(std::uint64_t{merges[at].rank} << 32 | at);
    }
  }
  merges.resize(count);
  merges[count - 1].rank = Merge::kNever;
  const auto renew = [&](std::uint32_t at) {
    merges[at] = next[at] == kNowhere ? Merge{} : table.find(symbols[at], symbols[next[at]]);
    if (merges[at].rank == Merge::kNever) return;
    queue.push_back(std::uint64_t{merges[at].rank} << 32 | at);
    std::ranges::push_heap(queue, std::greater<>{});
  };

  std::ranges::make_heap(queue, std::greater<>{});
  while (!queue.empty()) {
    std::ranges::pop_heap(queue, std::greater<>{});
    const auto rank = static_cast<std::uint32_t>(queue.back() >> 32);
    const auto at = static_cast<std::uint32_t>(queue.back());
    queue.pop_back();
    if (merges[at].rank != rank) continue;
    const std::uint32_t right = next[at];
    symbols[at] = merges[at].id;
    merges[right].rank = Merge::kNever;
    next[at] = next[right];
    if (next[at] != kNowhere) previous[next[at]] = at;
    renew(at);
    if (previous[at] != kNowhere) renew(previous[at]);
  }

  std::size_t kept = 0;
  for (std::uint32_t at = 0; at != kNowhere; at = next[at]) symbols[kept++] = symbols[at];
  symbols.resize(kept);
}

}  // namespace

void merge_symbols(const MergeTable& table, Workspace& workspace) {
  if (workspace.symbols.size() < 2) return;
  if (workspace.symbols.size() <= kShort) {
    merge_short(table, workspace);
  } else {
    merge_long(table, workspace);
  }
}

}  // namespace baton::tokenizer
