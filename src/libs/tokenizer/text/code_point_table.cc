// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/code_point_table.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace baton::tokenizer {
namespace {

constexpr std::size_t kAskable = std::size_t{1} << 21;

std::vector<CodePointTable::Run> runs_of(const CharSet& set) {
  std::vector<CodePointTable::Run> runs;
  for (const CharSet::Range& range : set.ranges()) {
    runs.push_back({range.first, range.last, 1});
  }
  return runs;
}

}  // namespace

CodePointTable::CodePointTable(std::span<const Run> runs) : index_(kAskable >> kBlockBits) {
  constexpr std::size_t kBlockSize = std::size_t{1} << kBlockBits;
  std::vector<std::uint8_t> flat(std::size_t{kLastCodePoint} + 1);
  for (const Run& run : runs) {
    std::fill(flat.begin() + run.first, flat.begin() + run.last + 1, run.value);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(flat.data()), flat.size());
  std::unordered_map<std::string_view, std::uint16_t> known;
  for (std::size_t block = 0; block * kBlockSize < flat.size(); ++block) {
    const std::string_view content = bytes.substr(block * kBlockSize, kBlockSize);
    if (block > 0 && content == bytes.substr((block - 1) * kBlockSize, kBlockSize)) {
      index_[block] = index_[block - 1];
      continue;
    }
    const auto number = static_cast<std::uint16_t>(blocks_.size() >> kBlockBits);
    const auto [place, is_new] = known.emplace(content, number);
    if (is_new) {
      blocks_.insert(blocks_.end(), content.begin(), content.end());
    }
    index_[block] = place->second;
  }
}

CodePointTable::CodePointTable(const CharSet& set) : CodePointTable(runs_of(set)) {}

}  // namespace baton::tokenizer
