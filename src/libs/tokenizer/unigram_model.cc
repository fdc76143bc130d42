// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/unigram_model.h"

#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/text/too_hard.h"
#include "libs/tokenizer/text/utf8.h"
#include "libs/tokenizer/vocabulary_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace baton::tokenizer {
namespace {

// Each byte of a piece takes a step of 24 bytes.
constexpr std::size_t kLongestPiece = std::size_t{4} << 20;

// How much worse than the worst token an unknown character is.
constexpr double kUnknownPenalty = 10;

// The library's JSON reader takes all digits for one whole number and divides it by a power of ten,
// which is off by a last bit now and then. Sums of scores that would be equal are not, then, and the
// better of them is another one. Files write the shortest digits that make the number.
double as_library_reads(double score) {
  std::array<char, 32> text = {};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), std::abs(score),
                                     std::chars_format::scientific);
  std::uint64_t digits = 0;
  int exponent = 0;
  const char* at = text.data();
  for (; at != written.ptr && *at != 'e'; ++at) {
    if (*at == '.') continue;
    digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
    if (at > text.data()) --exponent;
  }
  int shift = 0;
  if (at != written.ptr) std::from_chars(at + (at[1] == '+' ? 2 : 1), written.ptr, shift);
  exponent += shift;
  // Beyond this the power is no double; scores are logarithms and stay far away from it.
  if (exponent < -300 || exponent > 0) return score;
  const double read = static_cast<double>(digits) / std::pow(10.0, -exponent);
  return std::copysign(read, score);
}

struct Scored {
  Vocabulary vocabulary;
  std::vector<double> scores;
};

Result<Scored> read_scored(const JsonSection& section) {
  const auto list = section.array("vocab");
  if (!list) return fail(list.error());
  Scored read{.vocabulary = Vocabulary(list->size()), .scores = {}};
  for (const simdjson::dom::element element : *list) {
    simdjson::dom::array pair;
    std::string_view text;
    double score = 0;
    const auto id = static_cast<TokenId>(read.scores.size());
    if (element.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get(text) != simdjson::SUCCESS || pair.at(1).get(score) != simdjson::SUCCESS) {
      return section.wrong(fmt::format("vocab[{}] is not a token and its score", id));
    }
    const auto added = add_token(section, read.vocabulary, text, id);
    if (!added) return fail(added.error());
    read.scores.push_back(as_library_reads(score));
  }
  if (read.scores.empty()) return section.wrong("\"vocab\" is empty");
  return read;
}

}  // namespace

Result<std::unique_ptr<const Model>> UnigramModel::from_json(simdjson::dom::element json) {
  const auto section = JsonSection::of(json, "model");
  if (!section) return fail(section.error());
  const auto known = section->only({"type", "vocab", "unk_id", "byte_fallback"});
  if (!known) return fail(known.error());
  const auto fallback = section->flag("byte_fallback", false);
  if (!fallback) return fail(fallback.error());
  auto scored = read_scored(*section);
  if (!scored) return fail(std::move(scored.error()));
  // The library fails a request with a character that has no token; a file is asked to have one.
  const auto unknown = section->number("unk_id");
  if (!unknown) return fail(unknown.error());
  if (*unknown >= scored->scores.size())
    return section->wrong("\"unk_id\" is not in the vocabulary");
  return std::unique_ptr<const Model>(new UnigramModel(
      std::move(scored->vocabulary), std::move(scored->scores), *unknown, *fallback));
}

UnigramModel::UnigramModel(Vocabulary words, std::vector<double> scores, TokenId unknown,
                           bool byte_fallback)
    : VocabularyModel(std::move(words)),
      scores_(std::move(scores)),
      unknown_(unknown),
      byte_fallback_(byte_fallback) {
  for (TokenId id = 0; id < vocabulary().id_end(); ++id) {
    if (!vocabulary().text(id).empty()) tokens_.add(vocabulary().text(id), id);
  }
  unknown_score_ = *std::ranges::min_element(scores_) - kUnknownPenalty;
  for (unsigned byte = 0; byte < 256; ++byte) {
    fallback_[byte] = vocabulary().find_or(fmt::format("<0x{:02X}>", byte), Vocabulary::kNone);
  }
}

bool UnigramModel::complete() const {
  return byte_fallback_ && std::ranges::find(fallback_, Vocabulary::kNone) == fallback_.end();
}

void UnigramModel::append_unknown(std::string_view text, TokenIds& ids) const {
  // Unknown characters in a row may spell a token that no path could take.
  const TokenId known = vocabulary().find_or(text, Vocabulary::kNone);
  const auto fallback = [&](char byte) { return fallback_[static_cast<unsigned char>(byte)]; };
  if (known != Vocabulary::kNone) {
    ids.push_back(known);
  } else if (byte_fallback_ && std::ranges::find(text, Vocabulary::kNone, fallback) == text.end()) {
    for (const char byte : text) ids.push_back(fallback(byte));
  } else {
    ids.push_back(unknown_);
  }
}

void UnigramModel::encode_piece(std::string_view piece, std::vector<Step>& steps,
                                TokenIds& ids) const {
  if (piece.size() > kLongestPiece) throw TooHard("it has a piece of more than four mebibytes");
  steps.assign(piece.size() + 1, {});
  for (std::size_t begin = 0; begin < piece.size();) {
    const double score = steps[begin].score;
    const std::size_t character = utf8_size(piece[begin]);
    const auto offer = [&](std::size_t end, TokenId id, double gain) {
      Step& step = steps[end];
      if (step.begin != kUnreached && step.score >= score + gain) return;
      step = {.score = score + gain, .begin = begin, .id = id};
    };
    bool single = false;
    tokens_.for_each_at(piece, begin, [&](std::size_t end, TokenId id) {
      offer(end, id, scores_[id]);
      single = single || end - begin == character;
    });
    if (!single) offer(begin + character, unknown_, unknown_score_);
    begin += character;
  }

  // Back from the end; unknown ones in a row are one.
  std::vector<std::pair<std::string_view, TokenId>> path;
  for (std::size_t end = piece.size(); end > 0; end = steps[end].begin) {
    const Step& step = steps[end];
    if (step.id == unknown_ && !path.empty() && path.back().second == unknown_) {
      const std::size_t length = end - step.begin + path.back().first.size();
      path.back().first = piece.substr(step.begin, length);
    } else {
      path.emplace_back(piece.substr(step.begin, end - step.begin), step.id);
    }
  }
  for (auto part = path.rbegin(); part != path.rend(); ++part) {
    if (part->second == unknown_) {
      append_unknown(part->first, ids);
    } else {
      ids.push_back(part->second);
    }
  }
}

void UnigramModel::encode(std::span<const std::string_view> pieces, Workspace& /*workspace*/,
                          TokenIds& ids) const {
  std::vector<Step> steps;
  for (const std::string_view piece : pieces) encode_piece(piece, steps, ids);
}

}  // namespace baton::tokenizer
