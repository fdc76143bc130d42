// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/split_steps.h"

#include "libs/tokenizer/text/byte_alphabet.h"
#include "libs/tokenizer/text/simple_matchers.h"
#include "libs/tokenizer/text/unicode.h"
#include "libs/tokenizer/text/utf8.h"

#include <array>
#include <vector>

namespace baton::tokenizer {
namespace {

// Used again by every step of a thread: none calls another.
std::vector<Match>& cleared_matches() {
  static thread_local std::vector<Match> matches;
  matches.clear();
  return matches;
}

std::string& keep(Pieces& pieces, std::string text) {
  return pieces.changed.emplace_back(std::move(text));
}

}  // namespace

// To keep nothing but matches is the same as to isolate them where nothing lies between.
MatchStep::MatchStep(std::unique_ptr<const Matcher> matcher, SplitBehavior behavior, bool invert)
    : matcher_(std::move(matcher)),
      behavior_(behavior),
      invert_(invert),
      isolates_(behavior == SplitBehavior::Isolated ||
                (behavior == SplitBehavior::Removed && invert && matcher_->covers_all())) {}

void MatchStep::run(std::string_view piece, Place /*place*/, Pieces& pieces) const {
  if (isolates_ && matcher_->isolate(piece, pieces.views)) {
    return;
  }
  std::vector<Match>& matches = cleared_matches();
  matcher_->find_all(piece, matches);
  split_at(piece, matches, behavior_, invert_, pieces.views);
}

WordStep::WordStep()
    : sorts_([] {
        CharSet word = word_characters();
        word.add(0x200C, 0x200D);
        std::vector<CodePointTable::Run> runs{{0, kLastCodePoint, Sign}};
        for (const auto& [first, last] : word.ranges()) {
          runs.push_back({first, last, Word});
        }
        for (const auto& [first, last] : white_space().ranges()) {
          runs.push_back({first, last, Space});
        }
        return CodePointTable(runs);
      }()) {}

void WordStep::run(std::string_view piece, Place /*place*/, Pieces& pieces) const {
  std::size_t begin = 0;
  std::uint8_t running = Space;
  const auto finish = [&](std::size_t end) {
    if (running != Space) {
      pieces.views.push_back(piece.substr(begin, end - begin));
    }
    begin = end;
  };
  for (std::size_t at = 0; at < piece.size();) {
    const auto [code, size] = decode_utf8(piece.data() + at);
    if (const std::uint8_t sort = sorts_[code]; sort != running) {
      finish(at);
      running = sort;
    }
    at += size;
  }
  finish(piece.size());
}

void FixedLengthStep::run(std::string_view piece, Place /*place*/, Pieces& pieces) const {
  std::size_t begin = 0;
  std::size_t count = 0;
  for (std::size_t at = 0; at < piece.size();) {
    at += utf8_size(piece[at]);
    if (++count == length_ || at == piece.size()) {
      pieces.views.push_back(piece.substr(begin, at - begin));
      begin = at;
      count = 0;
    }
  }
}

void MetaspaceStep::run(std::string_view piece, Place place, Pieces& pieces) const {
  const bool begins_so = piece.starts_with(sign_) || piece.starts_with(' ');
  const bool wanted =
      prepend_ == Prepend::Always || (prepend_ == Prepend::First && place == Place::First);
  const bool prepend = wanted && !begins_so;
  std::string_view text = piece;
  if (prepend || piece.contains(' ')) {
    std::string changed = prepend ? sign_ : "";
    changed.reserve(piece.size() + sign_.size());
    for (const char c : piece) {
      if (c == ' ') {
        changed += sign_;
      } else {
        changed += c;
      }
    }
    text = keep(pieces, std::move(changed));
  }
  if (!split_) {
    pieces.views.push_back(text);
    return;
  }
  std::vector<Match>& matches = cleared_matches();
  LiteralMatcher(sign_).find_all(text, matches);
  split_at(text, matches, SplitBehavior::MergedWithNext, false, pieces.views);
}

void PrefixSpaceStep::run(std::string_view piece, Place /*place*/, Pieces& pieces) const {
  if (piece.starts_with(' ')) {
    pieces.views.push_back(piece);
    return;
  }
  pieces.views.emplace_back(keep(pieces, " " + std::string(piece)));
}

void ToByteAlphabetStep::run(std::string_view piece, Place /*place*/, Pieces& pieces) const {
  std::string& written = keep(pieces, {});
  ByteAlphabet::instance().write(piece, written);
  pieces.views.emplace_back(written);
}

void FromByteAlphabetStep::run(std::string_view piece, Place /*place*/, Pieces& pieces) const {
  std::string& bytes = keep(pieces, {});
  ByteAlphabet::instance().read(piece, bytes);
  pieces.views.emplace_back(bytes);
}

}  // namespace baton::tokenizer
