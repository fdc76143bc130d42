// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/alphabet.h"

#include "libs/tokenizer/text/utf8.h"

#include <algorithm>
#include <map>

namespace baton::tokenizer {
namespace {

constexpr std::size_t kMaxSymbols = 256;

// A code at which a set begins or ends.
struct Edge {
  char32_t code;
  std::size_t set;
};

std::vector<Edge> edges_of(std::span<const CharSet> sets) {
  std::vector<Edge> edges;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    for (const CharSet::Range& range : sets[set].ranges()) {
      edges.push_back({range.first, set});
      edges.push_back({range.last + 1, set});
    }
  }
  std::ranges::sort(edges, {}, &Edge::code);
  return edges;
}

}  // namespace

std::optional<Alphabet> Alphabet::for_sets(std::span<const CharSet> sets) {
  const std::vector<Edge> edges = edges_of(sets);
  std::map<std::vector<bool>, std::uint8_t> known;
  std::vector<CodePointTable::Run> runs;
  std::vector<bool> holding(sets.size());
  std::size_t edge = 0;
  for (char32_t code = 0; code <= kLastCodePoint;) {
    for (; edge < edges.size() && edges[edge].code == code; ++edge) {
      holding[edges[edge].set].flip();
    }
    const char32_t end = edge < edges.size() ? edges[edge].code : kLastCodePoint + 1;
    auto found = known.find(holding);
    if (found == known.end()) {
      if (known.size() == kMaxSymbols) {
        return std::nullopt;
      }
      found = known.emplace(holding, static_cast<std::uint8_t>(known.size())).first;
    }
    runs.push_back({code, end - 1, found->second});
    code = end;
  }
  std::vector<std::vector<std::uint8_t>> symbols(sets.size());
  for (const auto& [members, symbol] : known) {
    for (std::size_t set = 0; set < sets.size(); ++set) {
      if (members[set]) {
        symbols[set].push_back(symbol);
      }
    }
  }
  for (auto& list : symbols) {
    std::ranges::sort(list);
  }
  return Alphabet(runs, std::move(symbols));
}

void Alphabet::write(std::string_view text, std::string& symbols) const {
  symbols.resize(text.size());
  char* out = symbols.data();
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const auto [code, size] = decode_utf8(at);
    *out++ = static_cast<char>(table_[code]);
    at += size;
  }
  symbols.resize(static_cast<std::size_t>(out - symbols.data()));
}

}  // namespace baton::tokenizer
